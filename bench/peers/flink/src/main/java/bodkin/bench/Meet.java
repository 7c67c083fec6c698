package bodkin.bench;

import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.util.Collector;

/** Waits for an event of each input, of which a newer one replaces an older one; gives them one behind the other, or their mean. */
public final class Meet implements FlatMapFunction<Points, Points> {
    private final boolean mean;
    private final Points[] waiting;
    private int present;

    public Meet(int inputs, boolean mean) {
        this.mean = mean;
        this.waiting = new Points[inputs];
    }

    @Override
    public void flatMap(Points event, Collector<Points> out) {
        if (waiting[event.input] == null) {
            present++;
        }
        waiting[event.input] = event;
        if (present < waiting.length) {
            return;
        }
        long createdNs = 0;
        int length = 0;
        for (Points part : waiting) {
            createdNs = Math.max(createdNs, part.createdNs);
            length += part.values.length;
        }
        out.collect(new Points(0, createdNs, mean ? mean() : behindEachOther(length)));
        java.util.Arrays.fill(waiting, null);
        present = 0;
    }

    private double[] behindEachOther(int length) {
        double[] values = new double[length];
        int at = 0;
        for (Points part : waiting) {
            System.arraycopy(part.values, 0, values, at, part.values.length);
            at += part.values.length;
        }
        return values;
    }

    private double[] mean() {
        double[] values = new double[waiting[0].values.length];
        for (int at = 0; at < values.length; at++) {
            double sum = 0;
            for (Points part : waiting) {
                sum += part.values[at];
            }
            values[at] = sum / waiting.length;
        }
        return values;
    }
}
