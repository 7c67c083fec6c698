package bodkin.bench;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Frames of `bench cpep`, numbers little-endian: length of what follows (4 bytes), number (4), creation in ns (8), points. */
final class Frames {
    static final int LENGTH_BYTES = 4;
    static final int HEAD_BYTES = 12;

    private Frames() {}

    static ByteBuffer buffer(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    static void write(OutputStream out, int number, long createdNs, byte[] points) throws IOException {
        ByteBuffer frame = buffer(LENGTH_BYTES + HEAD_BYTES + points.length);
        frame.putInt(HEAD_BYTES + points.length).putInt(number).putLong(createdNs).put(points);
        out.write(frame.array());
        out.flush();
    }
}
