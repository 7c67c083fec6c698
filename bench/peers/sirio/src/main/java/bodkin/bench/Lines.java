package bodkin.bench;

import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;

import org.oristool.models.pn.Priority;
import org.oristool.models.stpn.MarkingExpr;
import org.oristool.models.stpn.trees.StochasticTransitionFeature;
import org.oristool.petrinet.EnablingFunction;
import org.oristool.petrinet.Marking;
import org.oristool.petrinet.PetriNet;
import org.oristool.petrinet.Transition;

/** A net as `bodkin model peers` writes it: a line for each place, transition and arc, the arcs behind their transition. */
final class Lines {
    final PetriNet net = new PetriNet();
    final Marking marking = new Marking();
    /** Whether every delay is exponential, so that the analysis of Markov chains takes it. */
    boolean isMarkov = true;
    private Transition last;

    Lines(Path file) throws IOException {
        for (String line : Files.readAllLines(file)) {
            take(line);
        }
    }

    private void take(String line) {
        String[] words = line.split(" ");
        switch (words[0]) {
            case "place" -> marking.addTokens(net.addPlace(words[1]), Integer.parseInt(words[2]));
            case "transition" -> last = net.addTransition(words[1]);
            case "input" -> net.addPrecondition(net.getPlace(words[1]), last, Integer.parseInt(words[2]));
            case "output" -> net.addPostcondition(last, net.getPlace(words[1]), Integer.parseInt(words[2]));
            case "inhibitor" -> net.addInhibitorArc(net.getPlace(words[1]), last, Integer.parseInt(words[2]));
            case "guard" -> last.addFeature(new EnablingFunction(line.substring("guard ".length())));
            case "immediate" -> {
                MarkingExpr weight = MarkingExpr.from(words[2], net);
                last.addFeature(StochasticTransitionFeature.newDeterministicInstance(BigDecimal.ZERO, weight));
                last.addFeature(new Priority(Integer.parseInt(words[1])));
            }
            case "exponential" -> last.addFeature(StochasticTransitionFeature.newExponentialInstance(words[1]));
            case "erlang" -> delay(StochasticTransitionFeature.newErlangInstance(Integer.parseInt(words[1]), new BigDecimal(words[2])));
            case "uniform" -> delay(StochasticTransitionFeature.newUniformInstance(words[1], words[2]));
            case "deterministic" -> delay(StochasticTransitionFeature.newDeterministicInstance(words[1]));
            default -> throw new IllegalArgumentException("`" + line + "` is no line of a net");
        }
    }

    private void delay(StochasticTransitionFeature feature) {
        last.addFeature(feature);
        isMarkov = false;
    }
}
