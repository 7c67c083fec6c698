import java.security.PrivateKey;
import java.security.PublicKey;
import org.jose4j.jwa.AlgorithmConstraints;
import org.jose4j.jwa.AlgorithmConstraints.ConstraintType;
import org.jose4j.jwe.JsonWebEncryption;
import org.jose4j.jws.JsonWebSignature;
import org.jose4j.jwt.JwtClaims;
import org.jose4j.jwt.consumer.JwtConsumerBuilder;

/** Sealed messages between two clouds, by jose4j: signed by one's key, sealed for the other's. */
final class Seal {
    private static final String SIGNATURE = "RS512";
    private static final String WRAPPING = "RSA-OAEP-256";
    private static final String ENCRYPTION = "A256CBC-HS512";

    private Seal() {
    }

    /** Members that are null are absent. */
    static String close(String type, String session, String payload, PrivateKey own, PublicKey other) throws Exception {
        JwtClaims claims = new JwtClaims();
        claims.setGeneratedJwtId();
        claims.setIssuedAtToNow();
        String[][] members = {{"mst", type}, {"sid", session}, {"pld", payload}};
        for (String[] member : members) {
            if (member[1] != null) {
                claims.setStringClaim(member[0], member[1]);
            }
        }
        JsonWebSignature signed = new JsonWebSignature();
        signed.setAlgorithmHeaderValue(SIGNATURE);
        signed.setPayload(claims.toJson());
        signed.setKey(own);
        JsonWebEncryption sealed = new JsonWebEncryption();
        sealed.setAlgorithmHeaderValue(WRAPPING);
        sealed.setEncryptionMethodHeaderParameter(ENCRYPTION);
        sealed.setContentTypeHeaderValue("JWT");
        sealed.setPayload(signed.getCompactSerialization());
        sealed.setKey(other);
        return sealed.getCompactSerialization();
    }

    static JwtClaims open(String sealed, PrivateKey own, PublicKey other) throws Exception {
        return new JwtConsumerBuilder()
                .setRequireJwtId()
                .setEnableRequireEncryption()
                .setEnableRequireIntegrity()
                .setDecryptionKey(own)
                .setVerificationKey(other)
                .setJwsAlgorithmConstraints(new AlgorithmConstraints(ConstraintType.PERMIT, SIGNATURE))
                .setJweAlgorithmConstraints(new AlgorithmConstraints(ConstraintType.PERMIT, WRAPPING))
                .setJweContentEncryptionAlgorithmConstraints(new AlgorithmConstraints(ConstraintType.PERMIT, ENCRYPTION))
                .build()
                .processToClaims(sealed);
    }
}
