"""Expected tokens of places at given times by Storm, as CSV: FILE STEP LAST PLACE...

The net is what `bodkin model peers` writes: a line for each place, transition and arc. Storm reads it as a PRISM program: a variable for
each place, a command for each transition. Only nets whose delays are all exponential have one.
"""

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
    for place in places:
        lines += [f'rewards "{place}"', f"  true : {place};", "endrewards"]
    return "\n".join(lines) + "\n"


def main(path, step, last, *wanted):
    import stormpy

    places, transitions = parts(path)
    with tempfile.NamedTemporaryFile("w", suffix=".prism") as file:
        file.write(program(places, transitions))
        file.flush()
        read = stormpy.parse_prism_program(file.name, True)
    count = round(float(last) / float(step))
    times = [float(last)] if count == 1 else [index * float(step) for index in range(count + 1)]
    asked = [f'R{{"{place}"}}=? [ I={time} ]' for time in times for place in wanted]
    formulas = [stormpy.parse_properties_for_prism_program(text, read)[0] for text in asked]
    model = stormpy.build_sparse_model_with_options(read, stormpy.BuilderOptions([formula.raw_formula for formula in formulas]))
    first = model.initial_states[0]
    print("t," + ",".join(wanted), flush=True)
    answers = iter(formulas)
    for time in times:
        values = [stormpy.model_checking(model, next(answers), only_initial_states=True).at(first) for _ in wanted]
        print(",".join(repr(value) for value in [time, *values]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
