"""Nets, and what they will do."""

from __future__ import annotations

import itertools
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _engine
from .answers import Passage, Response, Simulation, Solution, Sweep
from .laws import Law

Arcs = Union[Sequence[str], Mapping[str, int]]
"""Places, each once; or places with the weight of the arc."""


def _arcs(arcs: Arcs) -> List[Dict[str, Any]]:
    pairs = arcs.items() if isinstance(arcs, Mapping) else [(place, 1) for place in arcs]
    return [{"place": place, "weight": weight} for place, weight in pairs]


class Net:
    """A net while it is built. Mistakes are told when it is used, with the part they are in."""

    def __init__(self, name: str, time_unit: str = "s", parameters: Optional[Mapping[str, float]] = None) -> None:
        """``parameters`` are names with numbers: guards and rates use them as they use places, and wherever a number is expected there may be
        a text as ``"=2 * pool"``."""
        self._form: Dict[str, Any] = {"schema": "stpn-neutral-1", "name": name, "time_unit": time_unit, "places": [], "transitions": []}
        if parameters:
            self._form["parameters"] = dict(parameters)

    @classmethod
    def read(cls, path: Union[str, "os.PathLike[str]"], which: Optional[str] = None) -> "Net":
        """A net from a file, by the end of its name: ``.pnml``, ``.xpn`` (ORIS), or Bodkin's own form. ``which``: the id of a net of a PNML document of
        several."""
        path = Path(path)
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".pnml":
            return cls.from_pnml(text, which)
        return cls.from_xpn(text, path.stem) if path.suffix == ".xpn" else cls.from_json(text)

    @classmethod
    def from_pnml(cls, text: str, which: Optional[str] = None) -> "Net":
        """A net from a PNML document (ISO/IEC 15909-2), of several the one with the id ``which``. What other programs say for themselves in it is
        passed over; what else may change its meaning is refused with a ``ValueError``."""
        return cls.from_json(_engine.from_pnml(text, which)[0])

    @classmethod
    def from_xpn(cls, text: str, name: str = "net", time_unit: str = "s") -> "Net":
        """A net of ORIS, whose files have neither a name nor a unit of time."""
        return cls.from_json(_engine.from_xpn(text, name, time_unit))

    @classmethod
    def from_json(cls, text: str) -> "Net":
        """A net from a text of Bodkin's own form."""
        _engine.columns(text)
        net = cls("")
        net._form = json.loads(text)
        return net

    def to_json(self) -> str:
        """The net as a text of Bodkin's own form."""
        return json.dumps(self._form, indent=1)

    def to_pnml(self) -> str:
        """The net as a PNML document; what PNML has no words for stands in elements of Bodkin's own."""
        return _engine.to_pnml(self.to_json())

    def with_parameters(self, **values: float) -> "Net":
        """The net with these values of its parameters, as numbers."""
        return Net.from_json(_engine.with_parameters(self.to_json(), [(name, float(value)) for name, value in values.items()]))

    @property
    def places(self) -> Tuple[str, ...]:
        """Names of the places."""
        return tuple(place["id"] for place in self._form["places"])

    def place(self, name: str, tokens: Union[int, str] = 0) -> "Net":
        """Adds a place with so many tokens at first; a text as ``"=pool"`` is an expression over parameters."""
        self._form["places"].append({"id": name, "initial": tokens})
        return self

    def timed(self, name: str, law: Union[Law, str], inputs: Arcs = (), outputs: Arcs = (), *, servers: Union[int, str] = "single",
              memory: str = "enabling", guard: Optional[str] = None, inhibitors: Arcs = (), tests: Arcs = (), priority: int = 0,
              weight: float = 1.0) -> "Net":
        """Adds a timed transition. ``law`` is a law, or an expression over places: the rate of an exponential one. ``servers``: ``"single"``,
        ``"infinite"`` or a number. ``memory``: ``"enabling"``, ``"age"`` or ``"repeat_identical"``."""
        delay = {"rate": law} if isinstance(law, str) else {"distribution": law}
        return self._add(name, "timed", inputs, outputs, guard, inhibitors, tests, priority, weight, servers=servers, memory=memory, **delay)

    def immediate(self, name: str, inputs: Arcs = (), outputs: Arcs = (), *, guard: Optional[str] = None, inhibitors: Arcs = (),
                  tests: Arcs = (), priority: int = 1, weight: float = 1.0) -> "Net":
        """Adds a transition that fires as soon as it may: of several those of the highest priority, among them one in proportion to the weights."""
        return self._add(name, "immediate", inputs, outputs, guard, inhibitors, tests, priority, weight)

    def _add(self, name: str, kind: str, inputs: Arcs, outputs: Arcs, guard: Optional[str], inhibitors: Arcs, tests: Arcs, priority: int,
             weight: float, **more: Any) -> "Net":
        form = {"id": name, "kind": kind, "inputs": _arcs(inputs), "outputs": _arcs(outputs), "inhibitors": _arcs(inhibitors),
                "tests": _arcs(tests), "priority": priority, "weight": weight, **more}
        if guard is not None:
            form["guard"] = guard
        self._form["transitions"].append(form)
        return self

    def solve(self, at: Optional[ArrayLike] = None, *, steady: bool = False, measures: Sequence[str] = (), until: Optional[str] = None,
              error: float = 1e-9, method: Optional[str] = None) -> Solution:
        """Expected tokens of every place, and measures, at the times ``at`` or in the long run (``steady``).

        A measure is an expression over places, of a condition its probability, ``throughput(TRANSITION)``, or ``firings(TRANSITION)`` since time 0; either of them with what a firing
        earns behind a comma. ``until``: markings where this holds are not left. ``error``: what values may be off at most; what cannot be had to it is refused with a ``RuntimeError``.
        """
        if steady == (at is not None):
            raise ValueError("give times, or steady=True")
        times = None if at is None else np.ascontiguousarray(at, dtype=np.float64)
        values, errors, how, reason, is_bound = _engine.solve(self.to_json(), times, list(measures), until, error, method)
        return Solution(times, self.places + tuple(measures), values, errors, how, reason, is_bound)

    def simulate(self, at: ArrayLike, *, measures: Sequence[str] = (), runs: int = 100_000, half_width: Optional[float] = None,
                 confidence: float = 0.99, seed: int = 1, threads: Optional[int] = None) -> Simulation:
        """The same values from random runs: so many, or with ``half_width`` as many as intervals of that width need, up to ``runs``.
        The same seed gives the same answer for any number of threads."""
        times = np.ascontiguousarray(at, dtype=np.float64)
        values, low, high, made = _engine.simulate(self.to_json(), times, list(measures), runs, half_width, confidence, seed,
                                                   threads or os.cpu_count() or 1)
        return Simulation(times, self.places + tuple(measures), values, low, high, made)

    def passage(self, until: str, shares: Sequence[float] = (0.5, 0.99), *, error: float = 1e-9) -> Passage:
        """The time until the condition ``until`` holds first: quantiles of these ``shares``, and the mean. ``error``: what the distribution function may
        be off at most."""
        low, high, mean, method, is_bound = _engine.passage(self.to_json(), until, [float(share) for share in shares], error)
        return Passage(np.array(shares, dtype=np.float64), low, high, *(mean or (None, None)), method, is_bound)

    def response(self, start: str, end: str, at: ArrayLike = (), *, shares: Sequence[float] = (), first: bool = False,
                 error: float = 1e-9) -> Response:
        """How long a token takes from its coming into the place ``start`` until it comes into ``end``, both in the order of their queues: the
        distribution function at the times ``at``, quantiles of ``shares``, and the mean. It is whichever token comes in the long run, or the last
        one that is in ``start`` at time 0 (``first``). All delays are made of exponential stages; others are refused with a ``RuntimeError``."""
        times = np.ascontiguousarray(at, dtype=np.float64)
        found = _engine.response(self.to_json(), start, end, times, [float(share) for share in shares], first, error)
        values, off, low, high, mean, rate = found
        return Response(times, values, off, np.array(shares, dtype=np.float64), low, high, *(mean or (None, None)), rate)

    def sweep(self, vary: Mapping[str, Sequence[float]], at: Optional[float] = None, *, steady: bool = False, measures: Sequence[str] = (),
              until: Optional[str] = None, error: float = 1e-6, method: Optional[str] = None, threads: Optional[int] = None) -> Sweep:
        """One question for every combination of the values of these parameters, the last of which changes fastest, side by side: at the time ``at``,
        or in the long run. A point that is refused is told in ``refused``."""
        if steady == (at is not None):
            raise ValueError("give a time, or steady=True")
        columns = self.places + tuple(measures)
        points = [dict(zip(vary, values)) for values in itertools.product(*vary.values())]
        times = None if at is None else np.array([at], dtype=np.float64)
        text = self.to_json()

        def solved(point: Dict[str, float]) -> Any:
            try:
                set_to = _engine.with_parameters(text, [(name, float(value)) for name, value in point.items()])
                values, errors, how, _, is_bound = _engine.solve(set_to, times, list(measures), until, error, method)
                return values[0], errors, how, is_bound, None
            except (RuntimeError, ValueError) as refused:
                nothing = np.full(len(columns), np.nan)
                return nothing, nothing, None, None, str(refused)

        with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
            found = list(pool.map(solved, points))
        if not found:
            raise ValueError("there is no point: every parameter needs a value")
        values, errors, methods, are_bounds, refused = zip(*found)
        return Sweep(tuple(points), columns, np.array(values), np.array(errors), methods, are_bounds, refused)

    def svg(self) -> str:
        """The net, drawn."""
        return _engine.drawing(self.to_json())

    def _repr_svg_(self) -> str:
        return self.svg()
