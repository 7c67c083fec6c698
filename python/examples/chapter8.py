"""The Event Handler of Rocha's thesis, chapter 8: built in code, solved exactly, simulated beside it, and drawn. ``python chapter8.py [DIR]``"""

import sys
from pathlib import Path

import numpy as np

import bodkin_petri as bp

CORES = [f"Executing_Thread_Core{core}" for core in range(1, 5)]


def event_handler(messages: int, pool: int = 4) -> bp.Net:
    """Messages are published, wait for a thread of the pool, run on one of four cores, and are sent to the subscriber; times in ms."""
    net = bp.Net(f"event_handler_k{messages}", time_unit="ms").place("Publisher", messages)
    for place in ["Request_Queue", "Active_Threads", *CORES, "Ready_to_Send", "Subscriber"]:
        net.place(place)
    threads = " + ".join(["Active_Threads", *CORES, "Ready_to_Send"])
    net.timed("publish", bp.erlang(13, 2.088), ["Publisher"], ["Request_Queue"])
    net.immediate("assign_request_to_thread", ["Request_Queue"], ["Active_Threads"], guard=f"{threads} < {pool}")
    for number, core in enumerate(CORES, 1):
        net.immediate(f"t{number}", ["Active_Threads"], [core], inhibitors=[core])
        net.timed(f"executing_Core{number}", bp.uniform(0, 1), [core], ["Ready_to_Send"])
    return net.timed("notify", bp.erlang(6, 2.683), ["Ready_to_Send"], ["Subscriber"])


def main(directory: Path) -> None:
    one, times = event_handler(1), np.linspace(0, 20, 201)
    solution = one.solve(times, measures=["Subscriber == 1"])
    arrived = solution.of("Subscriber == 1")
    mean = float(np.trapezoid(1 - arrived, times) if hasattr(np, "trapezoid") else np.trapz(1 - arrived, times))
    print(f"1 message: {solution.method}, error {solution.errors.max():.1e}; mean {mean:.3f} ms (13/2.088 + 1/2 + 6/2.683 = {13 / 2.088 + 0.5 + 6 / 2.683:.3f})")
    print(f"           99.95 % have arrived by {times[np.searchsorted(arrived, 0.9995)]:.1f} ms")
    (directory / "one.svg").write_text(solution.plot(["Publisher", "Ready_to_Send", "Subscriber"], "One message", "ms"))
    many = event_handler(10).simulate(np.linspace(0, 80, 161), runs=20_000, measures=["Subscriber == 10"])
    print(f"10 messages: half have all arrived by {many.times[np.searchsorted(many.of('Subscriber == 10'), 0.5)]:.1f} ms ({many.runs} runs)")
    (directory / "ten.svg").write_text(many.plot(["Subscriber"], "Ten messages", "ms"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
