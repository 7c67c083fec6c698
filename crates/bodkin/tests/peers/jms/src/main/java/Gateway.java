import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.util.function.Consumer;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.jose4j.jwt.JwtClaims;

/** The gateway of a Java cloud, as far as one tunnel at a time goes: each message sealed by itself, the end told in plain. What comes is told, a line each. */
final class Gateway {
    private static final String RAW = "raw";
    private static final String CONTROL = "-CONTROL";

    private final Connection connection;
    private final Consumer<String> out;
    private final PrivateKey own;
    private String id;
    private String outgoing;
    private PublicKey peer;
    /** What the other gateway answers to an end that was told it is no news. */
    private volatile boolean isClosed;

    Gateway(Connection connection, KeyStore store, String password, Consumer<String> out) throws Exception {
        this.connection = connection;
        this.out = out;
        own = (PrivateKey) store.getKey(store.aliases().nextElement(), password.toCharArray());
    }

    /** The provider's end of a tunnel, as the gateway of this name; gives the tunnel's id. */
    String open(String name, String consumersKey) throws Exception {
        String drawn = Gatekeeper.drawSession();
        begin(drawn, "REQ-" + name, "RESP-" + name, consumersKey);
        return drawn;
    }

    /** The consumer's end of a tunnel that the gateway of this name has opened. */
    void enter(String name, String id, String providersKey) throws Exception {
        begin(id, "RESP-" + name, "REQ-" + name, providersKey);
    }

    private void begin(String id, String into, String outgoing, String key) throws Exception {
        this.id = id;
        this.outgoing = outgoing + "-" + id;
        isClosed = false;
        peer = Gatekeeper.key(key);
        hear(into + "-" + id, sealed -> {
            JwtClaims claims = Seal.open(sealed, own, peer);
            if (!RAW.equals(claims.getStringClaimValue("mst")) || claims.hasClaim("sid")) {
                throw new IllegalStateException("not as the gateways of Java clouds say it: " + claims);
            }
            return "data " + claims.getStringClaimValue("pld");
        });
        hear(into + "-" + id + CONTROL, word -> "control " + word);
    }

    /** Says bytes, which come and go as Base64. */
    void say(String base64) throws Exception {
        send(outgoing, Seal.close(RAW, null, base64, own, peer));
    }

    /** Ends it. */
    void close() throws Exception {
        isClosed = true;
        send(outgoing + CONTROL, "CLOSE " + id);
    }

    /** What a message says. */
    private interface Reader {
        String read(String text) throws Exception;
    }

    private void hear(String queue, Reader reader) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        consumer.setMessageListener(message -> {
            try {
                String told = reader.read(((TextMessage) message).getText());
                if (!isClosed) {
                    out.accept(told);
                }
            } catch (Exception exception) {
                out.accept("not read: " + exception);
            }
        });
    }

    private void send(String queue, String text) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage(text));
        session.close();
    }
}
