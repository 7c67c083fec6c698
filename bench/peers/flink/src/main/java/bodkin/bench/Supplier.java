package bodkin.bench;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import org.apache.flink.streaming.api.functions.source.SourceFunction;

/** Events of one supplier: one-byte points from its socket. */
public final class Supplier implements SourceFunction<Points> {
    private final int port;
    private final int number;
    private final int input;
    private final int points;
    private volatile boolean isOver;

    public Supplier(int port, int number, int input, int points) {
        this.port = port;
        this.number = number;
        this.input = input;
        this.points = points;
    }

    @Override
    public void run(SourceContext<Points> context) throws Exception {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setTcpNoDelay(true);
            Frames.write(socket.getOutputStream(), number, 0, new byte[0]);
            DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 1 << 16));
            ByteBuffer frame = Frames.buffer(Frames.LENGTH_BYTES + Frames.HEAD_BYTES + points);
            while (!isOver) {
                in.readFully(frame.array());
                double[] values = new double[points];
                for (int at = 0; at < points; at++) {
                    values[at] = frame.get(Frames.LENGTH_BYTES + Frames.HEAD_BYTES + at) & 0xFF;
                }
                context.collect(new Points(input, frame.getLong(2 * Frames.LENGTH_BYTES), values));
            }
        } catch (EOFException end) {
            // The suppliers are done.
            isOver = true;
        }
    }

    @Override
    public void cancel() {
        isOver = true;
    }
}
