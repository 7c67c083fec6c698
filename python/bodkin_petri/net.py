"""Nets, and what they will do."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _engine
from .laws import Law

Arcs = Union[Sequence[str], Mapping[str, int]]
"""Places, each once; or places with the weight of the arc."""


def _arcs(arcs: Arcs) -> List[Dict[str, Any]]:
    pairs = arcs.items() if isinstance(arcs, Mapping) else [(place, 1) for place in arcs]
    return [{"place": place, "weight": weight} for place, weight in pairs]


@dataclass(frozen=True)
class Solution:
    """Expected values with what they may be off."""

    times: Optional[NDArray[np.float64]]
    """Shape [times]; None in the long run."""
    columns: Tuple[str, ...]
    """Places, then measures."""
    values: NDArray[np.float64]
    """Shape [times, columns]; one row in the long run."""
    errors: NDArray[np.float64]
    """Shape [columns]: what the values of a column may be off."""
    method: str
    """How it was computed."""
    reason: str
    """Why that way."""
    is_bound: bool
    """Whether no value is further off than ``errors``; otherwise they are estimates."""

    def of(self, column: str) -> NDArray[np.float64]:
        """The values of a place or measure, shape [times]."""
        return np.ascontiguousarray(self.values[:, self.columns.index(column)])

    def plot(self, columns: Sequence[str], title: str = "", time_unit: str = "") -> str:
        """Curves of these columns as SVG."""
        if self.times is None:
            raise ValueError("the long run has no curve")
        lines = [(column, self.of(column), None) for column in columns]
        return _engine.chart(title, f"time / {time_unit}" if time_unit else "time", "expected value", self.times, lines)


@dataclass(frozen=True)
class Simulation:
    """Means of random runs with the intervals that hold the true values."""

    times: NDArray[np.float64]
    """Shape [times]."""
    columns: Tuple[str, ...]
    """Places, then measures."""
    values: NDArray[np.float64]
    """Shape [times, columns]."""
    low: NDArray[np.float64]
    """Lower ends, shape [times, columns]."""
    high: NDArray[np.float64]
    """Upper ends, shape [times, columns]."""
    runs: int
    """Runs that were made."""

    def of(self, column: str) -> NDArray[np.float64]:
        """The values of a place or measure, shape [times]."""
        return np.ascontiguousarray(self.values[:, self.columns.index(column)])

    def plot(self, columns: Sequence[str], title: str = "", time_unit: str = "") -> str:
        """Curves of these columns with their bands as SVG."""
        lines = []
        for column in columns:
            index = self.columns.index(column)
            band = tuple(np.ascontiguousarray(ends[:, index]) for ends in (self.low, self.high))
            lines.append((column, self.of(column), band))
        return _engine.chart(title, f"time / {time_unit}" if time_unit else "time", "expected value", self.times, lines)


class Net:
    """A net while it is built. Mistakes are told when it is used, with the part they are in."""

    def __init__(self, name: str, time_unit: str = "s") -> None:
        self._form: Dict[str, Any] = {"schema": "stpn-neutral-1", "name": name, "time_unit": time_unit, "places": [], "transitions": []}

    @classmethod
    def read(cls, path: Union[str, "os.PathLike[str]"]) -> "Net":
        """A net from a file of Bodkin's own form."""
        with open(path, encoding="utf-8") as file:
            return cls.from_json(file.read())

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

    @property
    def places(self) -> Tuple[str, ...]:
        """Names of the places."""
        return tuple(place["id"] for place in self._form["places"])

    def place(self, name: str, tokens: int = 0) -> "Net":
        """Adds a place with so many tokens at first."""
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

        A measure is an expression over places, of a condition its probability, ``throughput(TRANSITION)``, or ``firings(TRANSITION)`` since time 0. ``until``: markings where this holds are
        not left. ``error``: what values may be off at most; what cannot be had to it is refused with a ``RuntimeError``.
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

    def svg(self) -> str:
        """The net, drawn."""
        return _engine.drawing(self.to_json())

    def _repr_svg_(self) -> str:
        return self.svg()
