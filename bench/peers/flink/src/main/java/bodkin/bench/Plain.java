package bodkin.bench;

import java.nio.ByteBuffer;
import org.apache.flink.api.common.functions.MapFunction;

/** Numbers as bytes, little-endian. */
public final class Plain implements MapFunction<Points, Result> {
    static byte[] bytes(double[] values) {
        ByteBuffer bytes = Frames.buffer(values.length * Double.BYTES);
        for (double value : values) {
            bytes.putDouble(value);
        }
        return bytes.array();
    }

    @Override
    public Result map(Points event) {
        return new Result(event.createdNs, bytes(event.values));
    }
}
