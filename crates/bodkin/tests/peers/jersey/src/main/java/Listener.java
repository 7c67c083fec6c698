import java.util.concurrent.TimeUnit;
import javax.ws.rs.client.Client;
import javax.ws.rs.client.ClientBuilder;
import org.glassfish.jersey.media.sse.EventSource;
import org.glassfish.jersey.media.sse.InboundEvent;
import org.glassfish.jersey.media.sse.SseFeature;

/** Prints what two named listeners of one event source hear, until standard input ends: URL, name, other name. */
public final class Listener {
    private Listener() {}

    public static void main(String[] arguments) throws Exception {
        Client client = ClientBuilder.newBuilder().register(SseFeature.class).build();
        EventSource source =
                EventSource.target(client.target(arguments[0])).reconnectingEvery(100, TimeUnit.MILLISECONDS).build();
        source.register(event -> print("named", event), arguments[1]);
        source.register(event -> print("other", event), arguments[2]);
        source.open();
        System.out.println("open\t" + source.isOpen());
        while (System.in.read() >= 0) {
            // The test closes the input when it has heard enough.
        }
        source.close();
    }

    private static synchronized void print(String listener, InboundEvent event) {
        System.out.println(listener + "\t" + event.getName() + "\t" + event.getId() + "\t" + event.readData(String.class));
    }
}
