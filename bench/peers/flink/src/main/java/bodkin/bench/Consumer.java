package bodkin.bench;

import java.net.InetAddress;
import java.net.Socket;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.functions.sink.RichSinkFunction;

/** Sends results to the consumer of a number. */
public final class Consumer extends RichSinkFunction<Result> {
    private final int port;
    private final int number;
    private transient Socket socket;

    public Consumer(int port, int number) {
        this.port = port;
        this.number = number;
    }

    @Override
    public void open(Configuration parameters) throws Exception {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setTcpNoDelay(true);
        Frames.write(socket.getOutputStream(), number, 0, new byte[0]);
    }

    @Override
    public void invoke(Result result, Context context) throws Exception {
        Frames.write(socket.getOutputStream(), number, result.createdNs, result.bytes);
    }

    @Override
    public void close() throws Exception {
        if (socket != null) {
            socket.close();
        }
    }
}
