import java.util.function.Consumer;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;

/** Texts that go to a broker's topics and queues and come from them; what comes is told, a line each. */
final class Mail {
    private final Connection connection;
    private final Consumer<String> out;

    Mail(Connection connection, Consumer<String> out) {
        this.connection = connection;
        this.out = out;
    }

    void listen(String kind, String name) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createConsumer(destination(session, kind, name)).setMessageListener(message -> {
            try {
                String text = message instanceof TextMessage ? "text " + ((TextMessage) message).getText() : "no text";
                out.accept("heard " + name + " " + text);
            } catch (JMSException exception) {
                out.accept("heard " + name + " " + exception);
            }
        });
    }

    void send(String kind, String name, String text) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(destination(session, kind, name));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage(text));
        session.close();
    }

    private static Destination destination(Session session, String kind, String name) throws JMSException {
        return kind.equals("topic") ? session.createTopic(name) : session.createQueue(name);
    }
}
