"""The Event Handler of Rocha's thesis, chapter 8: its net (figure 8.1), one message (8.2), four messages (8.3). ``python chapter8.py [DIR]``"""

import sys
from pathlib import Path

import numpy as np

import bodkin_petri as bp

CORES = [f"Executing_Thread_Core{core}" for core in range(1, 5)]


def event_handler(messages: int, pool: int = 4, servers: str = "single") -> bp.Net:
    """Messages are published, wait for a thread of the pool, run on one of four cores, and are sent to the subscriber; times in ms."""
    net = bp.Net(f"event_handler_k{messages}", time_unit="ms").place("Publisher", messages)
    for place in ["Request_Queue", "Active_Threads", *CORES, "Ready_to_Send", "Subscriber"]:
        net.place(place)
    threads = " + ".join(["Active_Threads", *CORES, "Ready_to_Send"])
    net.timed("publish", bp.erlang(13, 2.088), ["Publisher"], ["Request_Queue"], servers=servers)
    net.immediate("assign_request_to_thread", ["Request_Queue"], ["Active_Threads"], guard=f"{threads} < {pool}")
    for number, core in enumerate(CORES, 1):
        net.immediate(f"t{number}", ["Active_Threads"], [core], inhibitors=[core])
        net.timed(f"executing_Core{number}", bp.uniform(0, 1), [core], ["Ready_to_Send"])
    return net.timed("notify", bp.erlang(6, 2.683), ["Ready_to_Send"], ["Subscriber"], servers=servers)


def main(directory: Path) -> None:
    one, times, shown = event_handler(1), np.linspace(0, 20, 201), ["Publisher", "Ready_to_Send", "Subscriber"]
    (directory / "figure-8-1.svg").write_text(one.svg())
    curves, until = one.solve(times), one.passage("Subscriber == 1", [0.99, 0.9995])
    print(f"1 message: {curves.method}, error {curves.errors.max():.1e}; mean {until.mean:.3f} ms (measured: 8.95), {until.high[0]:.2f} and {until.high[1]:.2f} ms for 99 and 99.95 %")
    (directory / "figure-8-2.svg").write_text(curves.plot(shown, "One message", "ms"))
    for servers, last, how in [("single", 50, "one by one"), ("infinite", 25, "in flight at once")]:  # The thesis does not say which it is.
        four = event_handler(4, servers=servers).solve(np.linspace(0, last, 2 * last + 1), measures=["Subscriber == 4"], error=1e-4)
        print(f"4 messages {how}: {four.method}, error {four.errors.max():.1e}; all there by {four.times[np.searchsorted(four.of('Subscriber == 4'), 0.5)]:.1f} ms with 50 %")
        (directory / f"figure-8-3-{servers}.svg").write_text(four.plot(shown, f"Four messages {how}", "ms"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
