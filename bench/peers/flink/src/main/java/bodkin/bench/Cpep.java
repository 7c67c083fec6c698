package bodkin.bench;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * The graph of Wang 2019, Figure 2.6, as `bench cpep` reads it: of each level so many streams with nothing in common.
 *
 * <p>Arguments: streams of the high, middle and low level; ports of the suppliers and of the consumers on this machine. Suppliers and consumers are numbered level by level.
 * Operators behind one supplier are one task, and so are those where suppliers meet.
 */
public final class Cpep {
    private final StreamExecutionEnvironment environment;
    private final int suppliersPort;
    private final int consumersPort;
    private int suppliers;
    private int consumers;

    private Cpep(StreamExecutionEnvironment environment, int suppliersPort, int consumersPort) {
        this.environment = environment;
        this.suppliersPort = suppliersPort;
        this.consumersPort = consumersPort;
    }

    public static void main(String[] arguments) throws Exception {
        int[] numbers = new int[5];
        for (int at = 0; at < numbers.length; at++) {
            numbers[at] = Integer.parseInt(arguments[at]);
        }
        Configuration configuration = new Configuration();
        configuration.set(PipelineOptions.OBJECT_REUSE, true);
        // Each task has buffers of its own, and there are several hundred.
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(256));
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(256));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
        // Nothing waits for a buffer to be full.
        environment.setBufferTimeout(0);
        Cpep graph = new Cpep(environment, numbers[3], numbers[4]);
        for (int copy = 0; copy < numbers[0]; copy++) {
            graph.high();
        }
        for (int copy = 0; copy < numbers[1]; copy++) {
            graph.middle();
        }
        for (int copy = 0; copy < numbers[2]; copy++) {
            graph.low();
        }
        environment.execute("cpep");
    }

    private void high() {
        join(spectra(2, 512, false), 2).map(new Plain()).addSink(sink());
    }

    private void middle() {
        join(spectra(4, 1024, true), 4).map(new Seal()).addSink(sink());
    }

    private void low() {
        List<DataStream<Points>> sources = new ArrayList<>();
        for (int input = 0; input < 2; input++) {
            sources.add(source(input, 2048));
        }
        union(sources).flatMap(new Meet(2, true)).map(new Filter()).map(new Plain()).addSink(sink());
    }

    private List<DataStream<Points>> spectra(int inputs, int points, boolean magnitudes) {
        List<DataStream<Points>> spectra = new ArrayList<>();
        for (int input = 0; input < inputs; input++) {
            spectra.add(source(input, points).map(new Filter()).map(new Spectrum(points, magnitudes)));
        }
        return spectra;
    }

    private DataStream<Points> join(List<DataStream<Points>> streams, int inputs) {
        return union(streams).flatMap(new Meet(inputs, false));
    }

    private DataStream<Points> union(List<DataStream<Points>> streams) {
        @SuppressWarnings("unchecked")
        DataStream<Points>[] others = streams.subList(1, streams.size()).toArray(DataStream[]::new);
        return streams.get(0).union(others);
    }

    private DataStream<Points> source(int input, int points) {
        return environment.addSource(new Supplier(suppliersPort, suppliers++, input, points), Points.class.getSimpleName(), org.apache.flink.api.common.typeinfo.TypeInformation.of(Points.class));
    }

    private Consumer sink() {
        return new Consumer(consumersPort, consumers++);
    }
}
