import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Key;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import org.jose4j.jwa.AlgorithmConstraints;
import org.jose4j.jwa.AlgorithmConstraints.ConstraintType;
import org.jose4j.jwe.JsonWebEncryption;
import org.jose4j.jws.JsonWebSignature;
import org.jose4j.jwt.consumer.InvalidJwtException;
import org.jose4j.jwt.consumer.JwtConsumer;
import org.jose4j.jwt.consumer.JwtConsumerBuilder;
import org.jose4j.keys.HmacKey;
import org.jose4j.lang.JoseException;

/**
 * Opens and makes tokens with jose4j; arguments, input and output are those of peer.py.
 */
public final class Peer {
    private static final String SIGNATURE = "RS512";
    private static final String WRAPPING = "RSA-OAEP-256";
    private static final String ENCRYPTION = "A256CBC-HS512";

    private final Path folder;

    private Peer(Path folder) {
        this.folder = folder;
    }

    public static void main(String[] arguments) throws Exception {
        Peer peer = new Peer(Path.of(arguments[1]));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        boolean opens = arguments[0].equals("open");
        JwtConsumer consumer = peer.consumer();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (opens) {
                System.out.println(open(consumer, line));
            } else {
                peer.make(line.substring(0, line.indexOf(' ')), line.substring(line.indexOf(' ') + 1));
            }
        }
    }

    /** As a provider of Arrowhead's Java library has it, and an end of its time asked for. */
    private JwtConsumer consumer() throws Exception {
        return new JwtConsumerBuilder()
                .setRequireJwtId()
                .setRequireNotBefore()
                .setRequireExpirationTime()
                .setEnableRequireEncryption()
                .setEnableRequireIntegrity()
                .setExpectedIssuer("Authorization")
                .setDecryptionKey(privateKey("provider"))
                .setVerificationKey(publicKey("authorization"))
                .setJwsAlgorithmConstraints(new AlgorithmConstraints(ConstraintType.PERMIT, SIGNATURE))
                .setJweAlgorithmConstraints(new AlgorithmConstraints(ConstraintType.PERMIT, WRAPPING))
                .setJweContentEncryptionAlgorithmConstraints(new AlgorithmConstraints(ConstraintType.PERMIT, ENCRYPTION))
                .build();
    }

    private static String open(JwtConsumer consumer, String token) {
        try {
            return consumer.processToClaims(token).getRawJson();
        } catch (InvalidJwtException refused) {
            System.err.println(refused.getMessage());
            return "refused";
        }
    }

    private void make(String name, String claims) throws Exception {
        PrivateKey authorization = privateKey("authorization");
        PublicKey provider = publicKey("provider");
        String signed = sign(claims, authorization, SIGNATURE);
        print(name, "right", seal(signed, provider, WRAPPING, ENCRYPTION, false));
        print(name, "another-signer", seal(sign(claims, privateKey("other"), SIGNATURE), provider, WRAPPING, ENCRYPTION, false));
        print(name, "another-recipient", seal(signed, publicKey("other"), WRAPPING, ENCRYPTION, false));
        for (String algorithm : new String[] {"RS256", "RS384", "PS512"}) {
            print(name, algorithm, seal(sign(claims, authorization, algorithm), provider, WRAPPING, ENCRYPTION, false));
        }
        Key mac = new HmacKey(publicKey("authorization").getEncoded());
        print(name, "hs512-with-the-public-key", seal(sign(claims, mac, "HS512"), provider, WRAPPING, ENCRYPTION, false));
        print(name, "none", seal(sign(claims, null, "none"), provider, WRAPPING, ENCRYPTION, false));
        print(name, "not-signed", seal(claims, provider, WRAPPING, ENCRYPTION, false));
        print(name, "not-sealed", signed);
        print(name, "rsa-oaep", seal(signed, provider, "RSA-OAEP", ENCRYPTION, false));
        print(name, "rsa1_5", seal(signed, provider, "RSA1_5", ENCRYPTION, false));
        print(name, "a128cbc-hs256", seal(signed, provider, WRAPPING, "A128CBC-HS256", false));
        print(name, "a256gcm", seal(signed, provider, WRAPPING, "A256GCM", false));
        print(name, "compressed", seal(signed, provider, WRAPPING, ENCRYPTION, true));
    }

    private static void print(String name, String kind, String token) {
        System.out.println(name + " " + kind + " " + token);
    }

    private static String sign(String claims, Key key, String algorithm) throws JoseException {
        JsonWebSignature signature = new JsonWebSignature();
        signature.setAlgorithmConstraints(AlgorithmConstraints.NO_CONSTRAINTS);
        signature.setAlgorithmHeaderValue(algorithm);
        signature.setPayload(claims);
        signature.setKey(key);
        return signature.getCompactSerialization();
    }

    private static String seal(String content, Key key, String wrapping, String encryption, boolean compressed) throws JoseException {
        JsonWebEncryption sealed = new JsonWebEncryption();
        sealed.setAlgorithmConstraints(AlgorithmConstraints.NO_CONSTRAINTS);
        sealed.setAlgorithmHeaderValue(wrapping);
        sealed.setEncryptionMethodHeaderParameter(encryption);
        sealed.setContentTypeHeaderValue("JWT");
        if (compressed) {
            sealed.enableDefaultCompression();
        }
        sealed.setPayload(content);
        sealed.setKey(key);
        return sealed.getCompactSerialization();
    }

    private PrivateKey privateKey(String name) throws Exception {
        return KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(der(name)));
    }

    private PublicKey publicKey(String name) throws Exception {
        return KeyFactory.getInstance("RSA").generatePublic(new X509EncodedKeySpec(der(name + "-public")));
    }

    private byte[] der(String name) throws Exception {
        String text = Files.readString(folder.resolve(name + ".pem"));
        return Base64.getMimeDecoder().decode(text.replaceAll("-----[A-Z ]+-----", ""));
    }
}
