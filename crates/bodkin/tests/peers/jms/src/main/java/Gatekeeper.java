import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.jose4j.json.JsonUtil;
import org.jose4j.jwt.JwtClaims;

/** The gatekeeper of a Java cloud, as far as its dialogues go: it calls another one, and answers it, by JMS. */
final class Gatekeeper {
    private static final String TOPIC = "General-M5QTZXM9G9AnpPHWT6WennWu";
    private static final String ACKNOWLEDGEMENT = "ack";
    private static final String LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    private static final int SESSION_LENGTH = 48;
    private static final long PATIENCE_MS = 20_000;
    private static final String NO_ANSWER = "{\"errorMessage\":\"this cloud does not answer that\",\"errorCode\":400,\"exceptionType\":\"INVALID_PARAMETER\"}";

    private final Broker broker;
    private final Connection connection;
    private final Consumer<String> out;
    private final String name;
    private final PublicKey shown;
    private PrivateKey own;
    /** What is answered, by message type. */
    private final Map<String, String> answers = new ConcurrentHashMap<>();
    /** Calls are answered one after the other. */
    private final ExecutorService calls = Executors.newSingleThreadExecutor();
    /** The last call, to be sent once more, and its session. */
    private String lastCall;
    private String lastSession;

    /** By this connection to the broker, as who is in this key store. */
    Gatekeeper(Broker broker, Connection connection, KeyStore store, String password, String name, Consumer<String> out) throws Exception {
        String alias = store.aliases().nextElement();
        this.broker = broker;
        this.connection = connection;
        this.out = out;
        this.name = name;
        own = (PrivateKey) store.getKey(alias, password.toCharArray());
        shown = store.getCertificate(alias).getPublicKey();
    }

    static PublicKey key(String base64) throws Exception {
        return KeyFactory.getInstance("RSA").generatePublic(new X509EncodedKeySpec(Base64.getDecoder().decode(base64)));
    }

    void answers(String type, String json) {
        answers.put(type, json);
    }

    /** Signs with another key than the one that it shows. */
    void forge(PrivateKey other) {
        own = other;
    }

    /** Answers one cloud's calls from now on. */
    void serve(String callerKey) throws Exception {
        PublicKey caller = key(callerKey);
        Session session = session();
        session.createConsumer(session.createTopic(TOPIC)).setMessageListener(message -> {
            // A listener may not wait for other messages.
            calls.execute(() -> take(message, caller));
        });
    }

    private void take(Message message, PublicKey caller) {
        try {
            Map<String, Object> call = JsonUtil.parseJson(text(message));
            if (name.equalsIgnoreCase((String) call.get("recipientCN"))) {
                answer(call, caller);
            }
        } catch (Exception exception) {
            out.accept("not answered: " + exception);
        }
    }

    private void answer(Map<String, Object> call, PublicKey caller) throws Exception {
        if (!((String) call.get("senderPublicKey")).equals(Base64.getEncoder().encodeToString(caller.getEncoded()))) {
            throw new IllegalStateException("another key than " + call.get("senderCN") + " should show");
        }
        String id = Seal.open((String) call.get("sessionId"), own, caller).getStringClaimValue("sid");
        Session session = session();
        try {
            Queue asked = session.createQueue("REQ-" + name + "-" + id);
            Queue answered = session.createQueue("RESP-" + name + "-" + id);
            MessageConsumer questions = session.createConsumer(asked);
            send(session, answered, Seal.close(ACKNOWLEDGEMENT, id, null, own, caller));
            String sealed = text(questions.receive(PATIENCE_MS));
            if (sealed == null) {
                throw new IllegalStateException("no question");
            }
            JwtClaims question = Seal.open(sealed, own, caller);
            String type = question.getStringClaimValue("mst");
            if (!id.equals(question.getStringClaimValue("sid"))) {
                throw new IllegalStateException("the question is of another session");
            }
            out.accept("asked " + type + " " + question.getStringClaimValue("pld"));
            send(session, answered, Seal.close(type, id, answers.getOrDefault(type, NO_ANSWER), own, caller));
            questions.close();
            // Each side removes the queue that it has written to.
            broker.remove(connection, answered);
        } finally {
            session.close();
        }
    }

    /** Asks another cloud; gives its answer, or null. */
    String ask(String recipient, String recipientKey, String type, String json, long acknowledgedWithinMs) throws Exception {
        PublicKey other = key(recipientKey);
        String id = drawSession();
        Session session = session();
        try {
            Queue asked = session.createQueue("REQ-" + recipient + "-" + id);
            MessageConsumer answers = session.createConsumer(session.createQueue("RESP-" + recipient + "-" + id));
            Map<String, Object> call = new LinkedHashMap<>();
            call.put("senderCN", name);
            call.put("senderPublicKey", Base64.getEncoder().encodeToString(shown.getEncoded()));
            call.put("recipientCN", recipient);
            call.put("sessionId", Seal.close(null, id, null, own, other));
            lastCall = JsonUtil.toJson(call);
            lastSession = id;
            send(session, session.createTopic(TOPIC), lastCall);
            String sealed = text(answers.receive(acknowledgedWithinMs));
            if (sealed == null) {
                return null;
            }
            expect(Seal.open(sealed, own, other), ACKNOWLEDGEMENT, id);
            send(session, asked, Seal.close(type, id, json, own, other));
            sealed = text(answers.receive(PATIENCE_MS));
            if (sealed == null) {
                throw new IllegalStateException("an acknowledgement, and no answer");
            }
            JwtClaims answer = Seal.open(sealed, own, other);
            expect(answer, type, id);
            answers.close();
            broker.remove(connection, asked);
            return answer.getStringClaimValue("pld");
        } finally {
            session.close();
        }
    }

    /** Sends the last call once more; gives whether anybody acknowledges it within this time. */
    boolean callAgain(String recipient, long withinMs) throws Exception {
        Session session = session();
        try {
            MessageConsumer answers = session.createConsumer(session.createQueue("RESP-" + recipient + "-" + lastSession));
            send(session, session.createTopic(TOPIC), lastCall);
            return answers.receive(withinMs) != null;
        } finally {
            session.close();
        }
    }

    private static void expect(JwtClaims claims, String type, String session) throws Exception {
        if (!type.equals(claims.getStringClaimValue("mst")) || !session.equals(claims.getStringClaimValue("sid"))) {
            throw new IllegalStateException("not " + type + " of " + session + ": " + claims);
        }
    }

    static String drawSession() {
        SecureRandom random = new SecureRandom();
        StringBuilder id = new StringBuilder();
        for (int at = 0; at < SESSION_LENGTH; at++) {
            id.append(LETTERS.charAt(random.nextInt(LETTERS.length())));
        }
        return id.toString();
    }

    private Session session() throws JMSException {
        return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private static String text(Message message) throws JMSException {
        return message == null ? null : ((TextMessage) message).getText();
    }

    private static void send(Session session, Destination to, String text) throws JMSException {
        MessageProducer producer = session.createProducer(to);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage(text));
        producer.close();
    }
}
