package bodkin.bench;

import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import org.oristool.models.gspn.GSPNTransient;
import org.oristool.models.stpn.TransientSolution;
import org.oristool.models.stpn.trans.RegTransient;
import org.oristool.models.stpn.trees.DeterministicEnablingState;
import org.oristool.petrinet.Marking;
import org.oristool.petrinet.Place;
import org.oristool.util.Pair;

/** Expected tokens of every place at even steps, as CSV: FILE STEP LAST. */
public final class Solve {
    /** Error of Poisson's law that is asked of the analysis of Markov chains. */
    private static final double ERROR = 1e-9;

    public static void main(String[] words) throws IOException {
        Lines lines = new Lines(Path.of(words[0]));
        BigDecimal step = new BigDecimal(words[1]);
        BigDecimal last = new BigDecimal(words[2]);
        List<Place> places = new ArrayList<>(lines.net.getPlaces());
        System.out.println("t," + places.stream().map(Place::getName).collect(Collectors.joining(",")));
        if (lines.isMarkov) {
            markov(lines, places, step.doubleValue(), last.doubleValue());
        } else {
            general(lines, places, step, last);
        }
    }

    private static void markov(Lines lines, List<Place> places, double step, double last) {
        double[] times = new double[(int) Math.round(last / step) + 1];
        for (int time = 0; time < times.length; time++) {
            times[time] = time * step;
        }
        // A lone time is asked alone, as of the others.
        double[] asked = times.length == 2 ? new double[] {last} : times;
        Pair<Map<Marking, Integer>, double[][]> found =
                GSPNTransient.builder().timePoints(asked).error(ERROR).build().compute(lines.net, lines.marking);
        for (int time = 0; time < asked.length; time++) {
            double[] sums = new double[places.size()];
            for (Map.Entry<Marking, Integer> entry : found.first().entrySet()) {
                add(sums, entry.getKey(), places, found.second()[time][entry.getValue()]);
            }
            print(asked[time], sums);
        }
    }

    private static void general(Lines lines, List<Place> places, BigDecimal step, BigDecimal last) {
        TransientSolution<DeterministicEnablingState, Marking> found =
                RegTransient.builder().timeBound(last).timeStep(step).build().compute(lines.net, lines.marking);
        int first = found.getRegenerations().indexOf(found.getInitialRegeneration());
        for (int time = 0; time < found.getSamplesNumber(); time++) {
            double[] sums = new double[places.size()];
            for (int state = 0; state < found.getColumnStates().size(); state++) {
                add(sums, found.getColumnStates().get(state), places, found.getSolution()[time][first][state]);
            }
            print(time * step.doubleValue(), sums);
        }
    }

    private static void add(double[] sums, Marking marking, List<Place> places, double probability) {
        for (int place = 0; place < sums.length; place++) {
            sums[place] += probability * marking.getTokens(places.get(place));
        }
    }

    private static void print(double time, double[] sums) {
        StringBuilder line = new StringBuilder().append(time);
        for (double sum : sums) {
            line.append(',').append(sum);
        }
        System.out.println(line);
    }

    private Solve() {}
}
