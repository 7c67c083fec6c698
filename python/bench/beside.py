"""Bodkin beside Sirio (Java) and Storm (stormpy) on the same nets and the same machine: processor seconds, memory, and how far each is off.

``python beside.py [CASE...]``; a program that is not there is left out, and said so. Each answer is found by a process of its own, whose start is in
its time. Sirio comes from Maven Central by ``mvn`` into ``build/``; Storm is looked for in this Python (``pip install stormpy``).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parents[1] / "vectors" / "petri"
TIMEOUT_S = 600
TICKETS = {"kanban3": 3, "kanban4": 4, "kanban5": 5}
GRIDS = {"intracloud": (0.1, 500.0), "intercloud": (1.0, 4000.0), "event_handler_k1": (0.1, 20.0)}
CASES = [*GRIDS, "kanban3", "kanban4"]


def net_text(case: str) -> str:
    return (VECTORS / "nets" / f"{case}.json").read_text()


def kanban_actions(tickets: int):
    """Four cells of a kanban system (Ciardo and Tilgner, ICASE report 96-35): name, rate, places that lose a token, places that get one."""
    yield "in1", 1.0, ["kanban1"], ["machine1"]
    yield "synch123", 0.4, ["out1", "kanban2", "kanban3"], ["kanban1", "machine2", "machine3"]
    yield "synch234", 0.5, ["out2", "out3", "kanban4"], ["kanban2", "kanban3", "machine4"]
    yield "out4", 0.9, ["out4"], ["kanban4"]
    for cell, (redo, ok) in enumerate([(0.36, 0.84), (0.42, 0.98), (0.39, 0.91), (0.33, 0.77)], 1):
        yield f"redo{cell}", redo, [f"machine{cell}"], [f"back{cell}"]
        yield f"ok{cell}", ok, [f"machine{cell}"], [f"out{cell}"]
        yield f"back{cell}", 0.3, [f"back{cell}"], [f"machine{cell}"]


def by_bodkin(case: str):
    import bodkin_petri as bp
    if case in GRIDS:
        step, last = GRIDS[case]
        solution = bp.Net.from_json(net_text(case)).solve(np.arange(round(last / step) + 1) * step)
        return {place: solution.of(place).tolist() for place in solution.columns}
    net = bp.Net(case)
    for cell in range(1, 5):
        net.place(f"kanban{cell}", TICKETS[case])
        for place in ["machine", "back", "out"]:
            net.place(f"{place}{cell}")
    for name, rate, inputs, outputs in kanban_actions(TICKETS[case]):
        net.timed(name, bp.exponential(rate), inputs, outputs)
    return {"machine1 > 0": net.solve([10.0], measures=["machine1 > 0"]).of("machine1 > 0").tolist()}


def by_storm(case: str):
    import stormpy
    tickets = TICKETS[case]
    places = [f"{place}{cell}" for cell in range(1, 5) for place in ["kanban", "machine", "back", "out"]]
    lines = ["ctmc", "module kanban"]
    lines += [f"{place}: [0..{tickets}] init {tickets if place.startswith('kanban') else 0};" for place in places]
    for _, rate, inputs, outputs in kanban_actions(tickets):
        change = " & ".join([f"({place}'={place}-1)" for place in inputs] + [f"({place}'={place}+1)" for place in outputs])
        lines.append(f"[] {' & '.join(f'{place}>0' for place in inputs)} -> {rate}: {change};")
    path = HERE / "build" / f"{case}.sm"
    path.write_text("\n".join([*lines, "endmodule"]))
    program = stormpy.parse_prism_program(str(path))
    formula = stormpy.parse_properties_for_prism_program("P=? [F[10,10] machine1>0]", program)[0]
    model = stormpy.build_model(program, [formula])
    result = stormpy.model_checking(model, formula, only_initial_states=True)
    return {"machine1 > 0": [result.at(model.initial_states[0])]}


def by_sirio(case: str):
    step, last = GRIDS[case]
    told = subprocess.run(["java", "-XX:+UseSerialGC", "-cp", f"{HERE}/build/*:{HERE}/build", "Sirio", str(step), str(last)], check=True,
                          input="\n".join(sirio_lines(json.loads(net_text(case)))), capture_output=True, text=True).stdout.splitlines()
    rows = np.array([[float(cell) for cell in line.split(",")] for line in told[1:]])
    return {place: rows[:, index].tolist() for index, place in enumerate(told[0].split(","))}


def sirio_lines(net):
    """The net as ``Sirio.java`` reads it: one word a field."""
    for place in net["places"]:
        yield f"place {place['id']} {place.get('initial', 0)}"
    for transition in net["transitions"]:
        if transition["kind"] == "immediate":
            law = ["immediate", transition.get("priority", 1), transition.get("weight", 1)]
        else:
            form = transition["distribution"]
            law = [form["type"], *(form[key] for key in ("shape", "rate", "min", "max") if key in form)]
        yield " ".join(["transition", transition["id"], *map(str, law)])
        for kind in ["inputs", "outputs", "inhibitors"]:
            for arc in transition.get(kind, []):
                yield f"{kind} {transition['id']} {arc['place']} {arc.get('weight', 1)}"
        if "guard" in transition:
            yield f"guard {transition['id']} {transition['guard'].replace(' ', '')}"


BY = {"bodkin": by_bodkin, "sirio": by_sirio, "storm": by_storm}


def prepare() -> list:
    """The programs that are there."""
    build = HERE / "build"
    build.mkdir(exist_ok=True)
    there = ["bodkin"]
    if shutil.which("mvn") and shutil.which("javac"):
        subprocess.run(["mvn", "-q", "-f", HERE / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={build}"], check=True)
        subprocess.run(["javac", "-cp", f"{build}/*", "-d", build, HERE / "Sirio.java"], check=True)
        there.append("sirio")
    else:
        print("no Maven or no Java compiler: without Sirio")
    if subprocess.run([sys.executable, "-c", "import stormpy"], capture_output=True).returncode == 0:
        there.append("storm")
    else:
        print("no stormpy: without Storm")
    return there


def measured(program: str, case: str):
    """What a process of its own finds, its processor seconds and its largest memory in MB."""
    process = subprocess.Popen(["timeout", str(TIMEOUT_S), sys.executable, __file__, "--one", program, case], stdout=subprocess.PIPE, text=True)
    told = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    found = json.loads(told) if status == 0 else None
    return found, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(cases: list) -> None:
    programs = prepare()
    print(f"{'case':18}{'program':9}{'cpu s':>9}{'MB':>8}{'off':>10}")
    for case in cases:
        reference = None
        for program in programs:
            if (program == "sirio" and case in TICKETS) or (program == "storm" and case not in TICKETS):
                continue
            found, seconds, megabytes = measured(program, case)
            reference = found if program == "bodkin" else reference
            if found is None:
                print(f"{case:18}{program:9}{seconds:9.2f}{megabytes:8.0f}  no answer")
                continue
            off = max(float(np.max(np.abs(np.array(found[key]) - reference[key]))) for key in found)
            print(f"{case:18}{program:9}{seconds:9.2f}{megabytes:8.0f}" + ("" if program == "bodkin" else f"{off:10.1e}"), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(BY[sys.argv[2]](sys.argv[3])))
    else:
        main(sys.argv[1:] or CASES)
