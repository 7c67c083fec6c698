"""What nets answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from . import _engine

Array = NDArray[np.float64]


def _axis(time_unit: str) -> str:
    return f"time / {time_unit}" if time_unit else "time"


@dataclass(frozen=True)
class Solution:
    """Expected values with what they may be off."""

    times: Optional[Array]
    """Shape [times]; None in the long run."""
    columns: Tuple[str, ...]
    """Places, then measures."""
    values: Array
    """Shape [times, columns]; one row in the long run."""
    errors: Array
    """Shape [columns]: what the values of a column may be off."""
    method: str
    """How it was computed."""
    reason: str
    """Why that way."""
    is_bound: bool
    """Whether no value is further off than ``errors``; otherwise they are estimates."""

    def of(self, column: str) -> Array:
        """The values of a place or measure, shape [times]."""
        return np.ascontiguousarray(self.values[:, self.columns.index(column)])

    def plot(self, columns: Sequence[str], title: str = "", time_unit: str = "") -> str:
        """Curves of these columns as SVG."""
        if self.times is None:
            raise ValueError("the long run has no curve")
        lines = [(column, self.of(column), None) for column in columns]
        return _engine.chart(title, _axis(time_unit), "expected value", self.times, lines)


@dataclass(frozen=True)
class Simulation:
    """Means of random runs with the intervals that hold the true values."""

    times: Array
    """Shape [times]."""
    columns: Tuple[str, ...]
    """Places, then measures."""
    values: Array
    """Shape [times, columns]."""
    low: Array
    """Lower ends, shape [times, columns]."""
    high: Array
    """Upper ends, shape [times, columns]."""
    runs: int
    """Runs that were made."""

    def of(self, column: str) -> Array:
        """The values of a place or measure, shape [times]."""
        return np.ascontiguousarray(self.values[:, self.columns.index(column)])

    def plot(self, columns: Sequence[str], title: str = "", time_unit: str = "") -> str:
        """Curves of these columns with their bands as SVG."""
        lines = []
        for column in columns:
            index = self.columns.index(column)
            band = tuple(np.ascontiguousarray(ends[:, index]) for ends in (self.low, self.high))
            lines.append((column, self.of(column), band))
        return _engine.chart(title, _axis(time_unit), "expected value", self.times, lines)


@dataclass(frozen=True)
class Passage:
    """The time until a condition holds first."""

    shares: Array
    """Probabilities, shape [shares]."""
    low: Array
    """The quantile of each share is not below this."""
    high: Array
    """Nor above this."""
    mean: Optional[float]
    """Expected time."""
    mean_error: Optional[float]
    """What it may be off, by comparison."""
    method: str
    """How it was computed."""
    is_bound: bool
    """Whether the ends of the quantiles are bounds."""


@dataclass(frozen=True)
class Response:
    """How long a token takes from one place to another; no value is further off than it says."""

    times: Array
    """Shape [times]."""
    values: Array
    """Probability that it takes no longer, shape [times]."""
    error: float
    """What these may be off."""
    shares: Array
    """Probabilities, shape [shares]."""
    low: Array
    """The quantile of each share is not below this."""
    high: Array
    """Nor above this."""
    mean: Optional[float]
    """Expected time; None where it could not be bounded."""
    mean_error: Optional[float]
    """What it may be off."""
    rate: Optional[float]
    """Tokens that come in a unit of time in the long run; None for the last one of the first marking."""

    def plot(self, title: str = "", time_unit: str = "") -> str:
        """The distribution function as SVG."""
        return _engine.chart(title, _axis(time_unit), "probability", self.times, [("has come", self.values, None)])


@dataclass(frozen=True)
class Sweep:
    """One question for many values of parameters."""

    points: Tuple[Dict[str, float], ...]
    """The parameters of each point."""
    columns: Tuple[str, ...]
    """Places, then measures."""
    values: Array
    """Shape [points, columns]; not a number where a point was refused."""
    errors: Array
    """What they may be off, shape [points, columns]."""
    methods: Tuple[Optional[str], ...]
    """How each point was computed."""
    are_bounds: Tuple[Optional[bool], ...]
    """Whether the errors of a point are bounds."""
    refused: Tuple[Optional[str], ...]
    """Why a point has no answer."""

    def of(self, column: str) -> Array:
        """The values of a place or measure, shape [points]."""
        return np.ascontiguousarray(self.values[:, self.columns.index(column)])

    def plot(self, columns: Sequence[str], title: str = "") -> str:
        """Curves of these columns over the only parameter, with bands of what they may be off, as SVG."""
        names = {name for point in self.points for name in point}
        if len(names) != 1:
            raise ValueError(f"a curve is over one parameter, and there are {len(names)}")
        name = names.pop()
        known = [index for index, refused in enumerate(self.refused) if refused is None]
        order = sorted(known, key=lambda index: self.points[index][name])
        x = np.array([self.points[index][name] for index in order])
        lines: Any = []
        for column in columns:
            index = self.columns.index(column)
            value, error = self.values[order, index], self.errors[order, index]
            lines.append((column, np.ascontiguousarray(value), (value - error, value + error)))
        return _engine.chart(title, name, "expected value", x, lines)
