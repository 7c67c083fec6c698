import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import javax.jms.Connection;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/**
 * Artemis with STOMP over TLS and certificates at both ends, and a JMS client of it. Takes a line for each thing that it is to do, and answers with one; what its listeners hear are further lines.
 */
public class Peer {
    private final String folder;
    private final String password;
    private final String address;
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private int port;
    private EmbeddedActiveMQ broker;
    private Connection connection;
    private Mail mail;

    private Peer(String folder, String password, String address) throws Exception {
        this.folder = folder;
        this.password = password;
        this.address = address;
        // It comes back where it was.
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
    }

    public static void main(String[] arguments) throws Exception {
        Peer peer = new Peer(arguments[0], arguments[1], arguments[2]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            peer.obey(line.split(" ", 4));
        }
        System.exit(0);
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
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private void start() throws Exception {
        String stores = ";keyStoreType=PKCS12;keyStorePath=" + folder + "/broker.p12;keyStorePassword=" + password
                + ";trustStoreType=PKCS12;trustStorePath=" + folder + "/anchors.p12;trustStorePassword=" + password;
        Configuration configuration = new ConfigurationImpl()
                .setPersistenceEnabled(false)
                .setSecurityEnabled(false)
                .setJMXManagementEnabled(false)
                .addAcceptorConfiguration("within", "vm://0")
                .addAcceptorConfiguration("stomp", "tcp://" + address + ":" + port + "?protocols=STOMP;sslEnabled=true;needClientAuth=true"
                        + stores + ";anycastPrefix=/queue/;multicastPrefix=/topic/");
        broker = new EmbeddedActiveMQ();
        broker.setConfiguration(configuration);
        broker.start();
        connection = new ActiveMQConnectionFactory("vm://0").createConnection();
        connection.start();
        mail = new Mail(connection, out::println);
    }
}
