import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Set;
import javax.jms.Connection;
import javax.jms.Queue;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.security.CheckType;
import org.apache.activemq.artemis.core.security.Role;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.activemq.artemis.spi.core.security.ActiveMQSecurityManager;

/** Artemis with STOMP and its own protocol over TLS, both with certificates at both ends; once started it comes back at the same ports. */
final class Broker {
    private final Keys keys;
    private final String address;
    private final int stompPort;
    private final int corePort;
    private String user;
    private String passcode;
    private EmbeddedActiveMQ broker;

    Broker(Keys keys, String address) throws IOException {
        this.keys = keys;
        this.address = address;
        try (ServerSocket one = free(); ServerSocket another = free()) {
            stompPort = one.getLocalPort();
            corePort = another.getLocalPort();
        }
    }

    private static ServerSocket free() throws IOException {
        return new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    }

    /** Lets nobody in, from the next start on, who does not say this name and passcode. */
    void askFor(String user, String passcode) {
        this.user = user;
        this.passcode = passcode;
    }

    int start() throws Exception {
        String guarded = ";sslEnabled=true;needClientAuth=true;" + stores("broker", ";");
        Configuration configuration = new ConfigurationImpl()
                .setPersistenceEnabled(false)
                .setSecurityEnabled(user != null)
                .setJMXManagementEnabled(false)
                .addAcceptorConfiguration("within", "vm://0")
                .addAcceptorConfiguration("core", "tcp://" + address + ":" + corePort + "?protocols=CORE" + guarded)
                .addAcceptorConfiguration("stomp", "tcp://" + address + ":" + stompPort + "?protocols=STOMP" + guarded
                        + ";anycastPrefix=/queue/;multicastPrefix=/topic/");
        broker = new EmbeddedActiveMQ();
        broker.setConfiguration(configuration);
        broker.setSecurityManager(new Guard());
        broker.start();
        return stompPort;
    }

    void stop() throws Exception {
        broker.stop();
    }

    /** A client in the broker's own process. */
    Connection within() throws Exception {
        return opened("vm://0");
    }

    /** A client with the certificate of this file, as the gatekeeper of a Java cloud is one. */
    Connection shownBy(String identity) throws Exception {
        return opened("tcp://127.0.0.1:" + corePort + "?sslEnabled=true&" + stores(identity, "&"));
    }

    /** Queues that nobody has declared go with their last listener and message. */
    void remove(Connection connection, Queue queue) {
    }

    private Connection opened(String place) throws Exception {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(place);
        Connection connection = user == null ? factory.createConnection() : factory.createConnection(user, passcode);
        connection.start();
        return connection;
    }

    /** The options that name what is shown and who is believed. */
    private String stores(String identity, String separator) {
        return String.join(separator, "keyStoreType=PKCS12", "keyStorePath=" + keys.path(identity), "keyStorePassword=" + keys.password(),
                "trustStoreType=PKCS12", "trustStorePath=" + keys.path("anchors"), "trustStorePassword=" + keys.password());
    }

    /** Asks for name and passcode, and lets whoever knows them do everything. */
    private final class Guard implements ActiveMQSecurityManager {
        @Override
        public boolean validateUser(String said, String saidPasscode) {
            return user == null || (user.equals(said) && passcode.equals(saidPasscode));
        }

        @Override
        public boolean validateUserAndRole(String said, String saidPasscode, Set<Role> roles, CheckType check) {
            return validateUser(said, saidPasscode);
        }
    }
}
