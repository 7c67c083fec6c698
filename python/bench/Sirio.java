import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.oristool.models.pn.Priority;
import org.oristool.models.stpn.RewardRate;
import org.oristool.models.stpn.TransientSolution;
import org.oristool.models.stpn.trans.RegTransient;
import org.oristool.models.stpn.trees.DeterministicEnablingState;
import org.oristool.models.stpn.trees.StochasticTransitionFeature;
import org.oristool.petrinet.EnablingFunction;
import org.oristool.petrinet.Marking;
import org.oristool.petrinet.PetriNet;
import org.oristool.petrinet.Transition;

/** Expected tokens of every place of a net by Sirio: {@code Sirio STEP LAST} reads the lines that {@code beside.py} writes, and writes a line a time. */
public final class Sirio {
    private Sirio() {}

    public static void main(String[] arguments) throws IOException {
        PetriNet net = new PetriNet();
        Marking first = new Marking();
        List<String> places = new ArrayList<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("place")) {
                first.setTokens(net.addPlace(words[1]), Integer.parseInt(words[2]));
                places.add(words[1]);
            } else if (words[0].equals("transition")) {
                law(net.addTransition(words[1]), words);
            } else {
                join(net, words);
            }
        }
        BigDecimal step = new BigDecimal(arguments[0]);
        BigDecimal last = new BigDecimal(arguments[1]);
        TransientSolution<DeterministicEnablingState, Marking> found =
                RegTransient.builder().greedyPolicy(last, BigDecimal.ZERO).timeStep(step).build().compute(net, first);
        RewardRate[] rates = places.stream().map(RewardRate::fromString).toArray(RewardRate[]::new);
        double[][][] values = TransientSolution.computeRewards(false, found, rates).getSolution();
        StringBuilder text = new StringBuilder(String.join(",", places)).append('\n');
        for (double[][] time : values) {
            for (int place = 0; place < places.size(); place++) {
                text.append(place == 0 ? "" : ",").append(time[0][place]);
            }
            text.append('\n');
        }
        System.out.print(text);
    }

    private static void law(Transition transition, String[] words) {
        BigDecimal last = new BigDecimal(words[words.length - 1]);
        switch (words[2]) {
            case "immediate" -> {
                transition.addFeature(StochasticTransitionFeature.newDeterministicInstance(BigDecimal.ZERO));
                transition.addFeature(new Priority(Integer.parseInt(words[3])));
            }
            case "exponential" -> transition.addFeature(StochasticTransitionFeature.newExponentialInstance(last));
            case "erlang" -> transition.addFeature(StochasticTransitionFeature.newErlangInstance(Integer.parseInt(words[3]), last));
            case "uniform" -> transition.addFeature(StochasticTransitionFeature.newUniformInstance(new BigDecimal(words[3]), last));
            default -> throw new IllegalArgumentException(words[2] + " is no law that is used here");
        }
    }

    private static void join(PetriNet net, String[] words) {
        Transition transition = net.getTransition(words[1]);
        switch (words[0]) {
            case "inputs" -> net.addPrecondition(net.getPlace(words[2]), transition, Integer.parseInt(words[3]));
            case "outputs" -> net.addPostcondition(transition, net.getPlace(words[2]), Integer.parseInt(words[3]));
            case "inhibitors" -> net.addInhibitorArc(net.getPlace(words[2]), transition, Integer.parseInt(words[3]));
            case "guard" -> transition.addFeature(new EnablingFunction(words[2]));
            default -> throw new IllegalArgumentException(words[0] + " joins nothing");
        }
    }
}
