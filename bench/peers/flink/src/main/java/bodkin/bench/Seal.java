package bodkin.bench;

import java.nio.ByteBuffer;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.configuration.Configuration;

/** AES-256-GCM under a key of the bench's, with a counted nonce. */
public final class Seal extends RichMapFunction<Points, Result> {
    private static final int NONCE_BYTES = 12;
    private static final int TAG_BITS = 128;

    private transient Cipher cipher;
    private transient SecretKeySpec key;
    private transient long count;

    @Override
    public void open(Configuration parameters) throws Exception {
        cipher = Cipher.getInstance("AES/GCM/NoPadding");
        key = new SecretKeySpec("a key of 32 bytes, good for this".getBytes(java.nio.charset.StandardCharsets.US_ASCII), "AES");
    }

    @Override
    public Result map(Points event) throws Exception {
        byte[] nonce = ByteBuffer.allocate(NONCE_BYTES).putInt(0).putLong(count++).array();
        cipher.init(Cipher.ENCRYPT_MODE, key, new GCMParameterSpec(TAG_BITS, nonce));
        return new Result(event.createdNs, cipher.doFinal(Plain.bytes(event.values)));
    }
}
