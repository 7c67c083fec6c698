import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.KeyPairGenerator;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;

/**
 * A broker that speaks STOMP over TLS with certificates at both ends, a JMS client of it, and the gatekeeper of a Java cloud. Takes a line for each thing that it is to do, and answers with one;
 * what its listeners hear are further lines.
 */
public class Peer {
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final Broker broker;
    private Connection connection;
    private Connection link;
    private Gatekeeper gatekeeper;

    private Peer(String folder, String password) {
        broker = new Broker(folder, password);
    }

    public static void main(String[] arguments) throws Exception {
        Peer peer = new Peer(arguments[0], arguments[1]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            peer.obey(line);
        }
        System.exit(0);
    }

    private void obey(String line) throws Exception {
        String[] words = line.split(" ", 4);
        switch (words[0]) {
            case "login":
                broker.askFor(words[1], words[2]);
                out.println("asking");
                break;
            case "start":
                int port = broker.start();
                connection = broker.within();
                out.println("started " + port);
                break;
            case "stop":
                connection.close();
                if (link != null) {
                    link.close();
                }
                broker.stop();
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
            case "gatekeeper":
                link = broker.shownBy("gatekeeper");
                gatekeeper = new Gatekeeper(link, broker.store("gatekeeper"), broker.password(), words[1], out::println);
                out.println("there");
                break;
            case "forge":
                KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
                generator.initialize(2048);
                gatekeeper.forge(generator.generateKeyPair().getPrivate());
                out.println("forged");
                break;
            case "serve":
                gatekeeper.serve(words[1]);
                out.println("serving");
                break;
            case "answer":
                gatekeeper.answers(words[1], line.split(" ", 3)[2]);
                out.println("answering");
                break;
            case "ask":
                // ask RECIPIENT KEY WITHIN_MS TYPE JSON
                String[] asked = line.split(" ", 6);
                String answer = gatekeeper.ask(asked[1], asked[2], asked[4], asked[5], Long.parseLong(asked[3]));
                out.println(answer == null ? "silence" : "answer " + answer);
                break;
            case "again":
                out.println(gatekeeper.callAgain(words[1], Long.parseLong(words[2])) ? "answered" : "silence");
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
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
