import java.util.List;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Queue;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQSslConnectionFactory;
import org.apache.activemq.broker.BrokerPlugin;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.SslContext;
import org.apache.activemq.broker.TransportConnector;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.security.AuthenticationUser;
import org.apache.activemq.security.SimpleAuthenticationPlugin;

/** ActiveMQ with STOMP and OpenWire over TLS, both with certificates at both ends; once started it comes back at the same ports. */
final class Broker {
    private final Keys keys;
    private final String address;
    private int stompPort;
    private int openWirePort;
    private String user;
    private String passcode;
    private BrokerService service;

    Broker(Keys keys, String address) {
        this.keys = keys;
        this.address = address;
    }

    /** Lets nobody in, from the next start on, who does not say this name and passcode. */
    void askFor(String user, String passcode) {
        this.user = user;
        this.passcode = passcode;
    }

    int start() throws Exception {
        service = new BrokerService();
        service.setBrokerName("peer");
        service.setPersistent(false);
        service.setUseJmx(false);
        service.setSslContext(new SslContext(keys.shown("broker"), keys.believed(), null));
        if (user != null) {
            SimpleAuthenticationPlugin plugin = new SimpleAuthenticationPlugin();
            plugin.setUsers(List.of(new AuthenticationUser(user, passcode, "everybody")));
            service.setPlugins(new BrokerPlugin[] {plugin});
        }
        TransportConnector stomp = service.addConnector("stomp+ssl://" + address + ":" + stompPort + "?needClientAuth=true");
        TransportConnector openWire = service.addConnector("ssl://" + address + ":" + openWirePort + "?needClientAuth=true");
        service.start();
        service.waitUntilStarted();
        stompPort = stomp.getConnectUri().getPort();
        openWirePort = openWire.getConnectUri().getPort();
        return stompPort;
    }

    void stop() throws Exception {
        service.stop();
        service.waitUntilStopped();
    }

    /** A client in the broker's own process. */
    Connection within() throws Exception {
        return opened(new ActiveMQConnectionFactory("vm://peer?create=false"));
    }

    /** A client with the certificate of this file, as the gatekeeper of a Java cloud is one. */
    Connection shownBy(String identity) throws Exception {
        ActiveMQSslConnectionFactory factory = new ActiveMQSslConnectionFactory("ssl://127.0.0.1:" + openWirePort);
        factory.setKeyAndTrustManagers(keys.shown(identity), keys.believed(), null);
        return opened(factory);
    }

    private Connection opened(ActiveMQConnectionFactory factory) throws Exception {
        Connection connection = user == null ? factory.createConnection() : factory.createConnection(user, passcode);
        connection.start();
        return connection;
    }

    /** Takes a queue away; one that is still read stays until the broker finds it idle. */
    void remove(Connection connection, Queue queue) {
        try {
            ((ActiveMQConnection) connection).destroyDestination((ActiveMQDestination) queue);
        } catch (JMSException stillRead) {
            // That it stays is the broker's to settle.
        }
    }
}
