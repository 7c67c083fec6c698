import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManagerFactory;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.SslContext;

/**
 * A broker that speaks STOMP over TLS with certificates at both ends, and a JMS client of it, as the gatekeeper of a Java cloud is one. Takes a line for each thing that it is to do, and answers with one;
 * what its listeners hear are further lines.
 */
public class Peer {
    private final char[] password;
    private final KeyStore keys;
    private final KeyStore anchors;
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private int port;
    private BrokerService broker;
    private Connection connection;

    private Peer(String folder, String password) throws Exception {
        this.password = password.toCharArray();
        keys = read(folder + "/broker.p12");
        anchors = read(folder + "/anchors.p12");
    }

    public static void main(String[] arguments) throws Exception {
        Peer peer = new Peer(arguments[0], arguments[1]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            peer.obey(line.split(" ", 4));
        }
        System.exit(0);
    }

    private KeyStore read(String file) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (FileInputStream stream = new FileInputStream(file)) {
            store.load(stream, password);
        }
        return store;
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "start":
                start();
                out.println("started " + port);
                break;
            case "stop":
                connection.close();
                broker.stop();
                broker.waitUntilStopped();
                out.println("stopped");
                break;
            case "listen":
                listen(words[1], words[2]);
                out.println("listening");
                break;
            case "send":
                send(words[1], words[2], words[3]);
                out.println("sent");
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private void start() throws Exception {
        KeyManagerFactory shown = KeyManagerFactory.getInstance("PKIX");
        shown.init(keys, password);
        TrustManagerFactory believed = TrustManagerFactory.getInstance("PKIX");
        believed.init(anchors);
        broker = new BrokerService();
        broker.setBrokerName("peer");
        broker.setPersistent(false);
        broker.setUseJmx(false);
        broker.setSslContext(new SslContext(shown.getKeyManagers(), believed.getTrustManagers(), null));
        String address = "stomp+ssl://127.0.0.1:" + port + "?needClientAuth=true";
        org.apache.activemq.broker.TransportConnector connector = broker.addConnector(address);
        broker.start();
        broker.waitUntilStarted();
        port = connector.getConnectUri().getPort();
        connection = new ActiveMQConnectionFactory("vm://peer?create=false").createConnection();
        connection.start();
    }

    private static Destination destination(Session session, String kind, String name) throws Exception {
        return kind.equals("topic") ? session.createTopic(name) : session.createQueue(name);
    }

    private void listen(String kind, String name) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createConsumer(destination(session, kind, name)).setMessageListener(message -> {
            try {
                String text = message instanceof TextMessage ? "text " + ((TextMessage) message).getText() : "no text";
                out.println("heard " + name + " " + text);
            } catch (Exception exception) {
                out.println("heard " + name + " " + exception);
            }
        });
    }

    private void send(String kind, String name, String text) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(destination(session, kind, name));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage(text));
        session.close();
    }
}
