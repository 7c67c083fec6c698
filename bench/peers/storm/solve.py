"""Expected tokens of places at given times by Storm, as CSV: FILE STEP LAST PLACE...

The net is what `bodkin model peers` writes: a line for each place, transition and arc. Storm reads it as a PRISM program: a variable for
each place, a command for each transition. Only nets whose delays are all exponential have one. Written for stormpy 2.0.
"""

import itertools
import sys
import tempfile


def parts(path):
    """The places with their tokens, and the transitions with their rates and arcs."""
    places, transitions = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            word, *rest = line.split()
            if word == "place":
                places[rest[0]] = int(rest[1])
            elif word == "transition":
                transitions.append({"rate": None, "input": {}, "output": {}})
            elif word == "exponential":
                transitions[-1]["rate"] = rest[0]
            elif word in ("input", "output"):
                transitions[-1][word][rest[0]] = int(rest[1])
            else:
                raise SystemExit(f"Storm has no `{word}` here: only exponential delays and plain arcs")
    return places, transitions


def program(places, transitions):
    """The same as a program of PRISM's language."""
    most = sum(places.values())
    lines = ["ctmc", "module net"]
    lines += [f"  {place} : [0..{most}] init {tokens};" for place, tokens in places.items()]
    for transition in transitions:
        guard = " & ".join(f"{place} >= {weight}" for place, weight in transition["input"].items()) or "true"
        moved = transition["input"].keys() | transition["output"].keys()
        change = {place: transition["output"].get(place, 0) - transition["input"].get(place, 0) for place in sorted(moved)}
        update = " & ".join(f"({place}' = {place} + {by})" for place, by in change.items() if by) or "true"
        lines.append(f"  [] {guard} -> {transition['rate']} : {update};")
    lines.append("endmodule")
    return "\n".join(lines) + "\n"


def main(path, step, last, *wanted):
    import stormpy

    places, transitions = parts(path)
    with tempfile.NamedTemporaryFile("w", suffix=".prism") as file:
        file.write(program(places, transitions))
        file.flush()
        read = stormpy.parse_prism_program(file.name, prism_compatibility=True)
    count = round(float(last) / float(step))
    times = [float(last)] if count == 1 else [index * float(step) for index in range(count + 1)]
    tokens = range(1, sum(places.values()) + 1)
    # Expected tokens are the sum of the probabilities of one and more, two and more, and so on. Storm has instantaneous rewards for that, but
    # those of 2.0.0 at a time t were seen to be the right ones for 2 t.
    asked = {key: f"P=? [ F[{key[0]},{key[0]}] {key[1]} >= {key[2]} ]" for key in itertools.product(times, wanted, tokens)}
    formulas = {key: stormpy.parse_properties(text, read)[0] for key, text in asked.items()}
    model = stormpy.build_model(read, list(formulas.values()))
    first = model.initial_states[0]

    def expected(time, place):
        total = 0.0
        for number in tokens:
            found = stormpy.model_checking(model, formulas[time, place, number], only_initial_states=True).get_value(first)
            if found == 0.0:
                break
            total += found
        return total

    print("t," + ",".join(wanted), flush=True)
    for time in times:
        print(",".join(repr(value) for value in [time, *(expected(time, place) for place in wanted)]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
