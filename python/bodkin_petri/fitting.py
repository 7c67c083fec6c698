"""Laws for measured times."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _engine
from .laws import Law


@dataclass(frozen=True)
class Fit:
    """The likeliest law of a family."""

    family: str
    law: Law
    """As nets take it."""
    mean: float
    log_likelihood: Optional[float]
    """None for laws without a density, as are the criteria."""
    aic: Optional[float]
    """Akaike's criterion: less is better."""
    bic: Optional[float]
    """Schwarz's criterion: less is better."""
    p_kolmogorov_smirnov: Optional[float]
    """Share of samples of the law itself, fitted again, that are as far from it; None without ``resamples``."""
    p_anderson_darling: Optional[float]
    """The same by another distance."""
    parameters: Dict[str, float]
    """By name; of laws of branches and stages with numbers behind them."""
    intervals: Dict[str, Tuple[float, float]]
    """For each parameter the interval that has 95 % of those of samples of the law itself, fitted again; empty without ``resamples``."""
    covariances: NDArray[np.float64] = field(compare=False)
    """Shape [parameters, parameters]: the shape of the confidence region; empty without ``resamples``."""
    values: NDArray[np.float64] = field(repr=False, compare=False)
    """What was measured."""

    def fits(self, level: float = 0.01) -> Optional[bool]:
        """Whether neither test refuses the law; None where it was not tested."""
        if self.p_kolmogorov_smirnov is None or self.p_anderson_darling is None:
            return None
        return min(self.p_kolmogorov_smirnov, self.p_anderson_darling) >= level

    def plot(self, kind: str = "density") -> str:
        """What was measured under the law, as SVG: ``"density"`` over a histogram, the distribution functions (``"cdf"``), or quantiles over
        quantiles (``"qq"``), which lie on the line where the law fits."""
        return _engine.fit_drawing(self.values, json.dumps(self.law), self.family, kind)

    def _repr_svg_(self) -> str:
        return self.plot()


def fit(times: ArrayLike, families: Optional[Sequence[str]] = None, *, resamples: int = 999, seed: int = 1,
        threads: Optional[int] = None) -> List[Fit]:
    """Fits every family, or these, to measured times; the best first by Schwarz's criterion."""
    values = np.ascontiguousarray(times, dtype=np.float64)
    found = _engine.fit(values, None if families is None else list(families), resamples, seed, threads or os.cpu_count() or 1)
    return [Fit(family, json.loads(law), *figures, dict(parameters), {name: (low, high) for name, low, high in intervals},
                np.array(covariances), values)
            for family, law, *figures, parameters, intervals, covariances in found]
