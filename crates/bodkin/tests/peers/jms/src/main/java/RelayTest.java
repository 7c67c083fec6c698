import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.util.Arrays;
import java.util.Base64;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.jose4j.jwt.JwtClaims;

/**
 * The QoS Monitor of a Java cloud, as far as tests of relays go: one side sends messages that the other one sends back, then, behind SWITCH, the other way round, until
 * CLOSE. What has come of it is told by a line.
 */
final class RelayTest {
    private static final String RAW = "raw";
    private static final String CONTROL = "-CONTROL";
    private static final String SWITCH = "SWITCH ";
    private static final String CLOSE = "CLOSE ";
    private static final int MESSAGES = 10;
    private static final int MESSAGE_BYTES = 2048;
    private static final long PATIENCE_MS = 20_000;

    private final Connection connection;
    private final Consumer<String> out;
    private final PrivateKey own;
    private final String id;
    private final String outgoing;
    private final PublicKey other;
    /** What has come, in its order: messages as they were sent, words of the control queue with the blank that is in them. */
    private final BlockingQueue<String> heard = new LinkedBlockingQueue<>();

    private RelayTest(Connection connection, KeyStore store, String password, String id, String into, String outgoing, String key, Consumer<String> out) throws Exception {
        this.connection = connection;
        this.out = out;
        this.id = id;
        this.outgoing = outgoing + "-" + id;
        own = (PrivateKey) store.getKey(store.aliases().nextElement(), password.toCharArray());
        other = Gatekeeper.key(key);
        hear(into + "-" + id, sealed -> {
            JwtClaims claims = Seal.open(sealed, own, other);
            if (!RAW.equals(claims.getStringClaimValue("mst")) || claims.hasClaim("sid")) {
                throw new IllegalStateException("not as QoS Monitors of Java clouds say it: " + claims);
            }
            return claims.getStringClaimValue("pld");
        });
        hear(into + "-" + id + CONTROL, word -> word);
    }

    /** The asked side, as whoever has this name; gives the test's id. */
    static String join(Connection connection, KeyStore store, String password, String name, String key, Consumer<String> out) throws Exception {
        String id = Gatekeeper.drawSession();
        RelayTest test = new RelayTest(connection, store, password, id, "REQ-" + name, "RESP-" + name, key, out);
        test.begin(() -> {
            int mirrored = test.mirror(SWITCH);
            int measured = test.measure();
            test.send(test.outgoing + CONTROL, CLOSE + id);
            return "joined: " + mirrored + " sent back, " + measured + " came back";
        });
        return id;
    }

    /** The asking side of a test that whoever has this name has joined. */
    static void ask(Connection connection, KeyStore store, String password, String name, String id, String key, Consumer<String> out) throws Exception {
        RelayTest test = new RelayTest(connection, store, password, id, "RESP-" + name, "REQ-" + name, key, out);
        test.begin(() -> {
            int measured = test.measure();
            test.send(test.outgoing + CONTROL, SWITCH + id);
            int mirrored = test.mirror(CLOSE);
            return "asked: " + measured + " came back, " + mirrored + " sent back";
        });
    }

    /** One side's part. */
    private interface Part {
        String play() throws Exception;
    }

    private void begin(Part part) {
        Thread thread = new Thread(() -> {
            try {
                out.accept(part.play());
            } catch (Exception exception) {
                out.accept("no test: " + exception);
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    /** Sends messages, each when the one before is back; gives how many came back. */
    private int measure() throws Exception {
        for (int number = 0; number < MESSAGES; number++) {
            byte[] bytes = new byte[MESSAGE_BYTES];
            Arrays.fill(bytes, (byte) ('a' + number));
            String message = Base64.getEncoder().encodeToString(bytes);
            send(outgoing, Seal.close(RAW, null, message, own, other));
            String back = next();
            if (!message.equals(back)) {
                throw new IllegalStateException("behind message " + number + " came " + back);
            }
        }
        return MESSAGES;
    }

    /** Sends back what comes, until this word; gives how many. */
    private int mirror(String until) throws Exception {
        for (int mirrored = 0;; mirrored++) {
            String message = next();
            if (message.equals(until + id)) {
                return mirrored;
            }
            if (Base64.getDecoder().decode(message).length != MESSAGE_BYTES) {
                throw new IllegalStateException("a message of another length came: " + message);
            }
            send(outgoing, Seal.close(RAW, null, message, own, other));
        }
    }

    private String next() throws InterruptedException {
        String message = heard.poll(PATIENCE_MS, TimeUnit.MILLISECONDS);
        if (message == null) {
            throw new IllegalStateException("nothing comes");
        }
        return message;
    }

    /** What a message says. */
    private interface Reader {
        String read(String text) throws Exception;
    }

    private void hear(String queue, Reader reader) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createConsumer(session.createQueue(queue)).setMessageListener(message -> {
            try {
                heard.add(reader.read(((TextMessage) message).getText()));
            } catch (Exception exception) {
                heard.add("not read: " + exception);
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
