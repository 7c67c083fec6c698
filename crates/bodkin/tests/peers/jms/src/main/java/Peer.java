import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.KeyPairGenerator;
import javax.jms.Connection;

/**
 * A broker (class Broker, of the project that this is compiled with) that speaks STOMP over TLS with certificates at both ends, a JMS client of it, and gatekeeper, gateway and QoS Monitor of a Java cloud. Takes a
 * line for each thing that it is to do, and answers with one; what its listeners hear are further lines.
 */
public class Peer {
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final Keys keys;
    private final Broker broker;
    private Connection connection;
    private Mail mail;
    private Connection link;
    private Gatekeeper gatekeeper;
    private Connection gatewayLink;
    private Gateway gateway;
    private Connection monitorLink;

    private Peer(String folder, String password, String address) throws Exception {
        keys = new Keys(folder, password);
        broker = new Broker(keys, address);
    }

    public static void main(String[] arguments) throws Exception {
        Peer peer = new Peer(arguments[0], arguments[1], arguments[2]);
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
                mail = new Mail(connection, out::println);
                out.println("started " + port);
                break;
            case "stop":
                connection.close();
                for (Connection further : new Connection[] {link, gatewayLink, monitorLink}) {
                    if (further != null) {
                        further.close();
                    }
                }
                broker.stop();
                out.println("stopped");
                break;
            case "listen":
                mail.listen(words[1], words[2]);
                out.println("listening");
                break;
            case "send":
                mail.send(words[1], words[2], words[3]);
                out.println("sent");
                break;
            case "gatekeeper":
                link = broker.shownBy("gatekeeper");
                gatekeeper = new Gatekeeper(broker, link, keys.store("gatekeeper"), keys.password(), words[1], out::println);
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
            case "monitor":
                monitorLink = broker.shownBy("monitor");
                out.println("there");
                break;
            case "join-test":
                // join-test OWN-NAME KEY
                out.println("joined " + RelayTest.join(monitorLink, keys.store("monitor"), keys.password(), words[1], words[2], out::println));
                break;
            case "ask-test":
                // ask-test NAME ID KEY; what comes of it is the answer.
                RelayTest.ask(monitorLink, keys.store("monitor"), keys.password(), words[1], words[2], words[3], out::println);
                break;
            case "gateway":
                gatewayLink = broker.shownBy("gateway");
                gateway = new Gateway(gatewayLink, keys.store("gateway"), keys.password(), out::println);
                out.println("there");
                break;
            case "open":
                // open OWN-NAME KEY
                out.println("opened " + gateway.open(words[1], words[2]));
                break;
            case "enter":
                // enter NAME ID KEY
                gateway.enter(words[1], words[2], words[3]);
                out.println("entered");
                break;
            case "say":
                // What comes of it may be quicker than a line that says that it is said.
                gateway.say(words[1]);
                break;
            case "close":
                gateway.close();
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}
