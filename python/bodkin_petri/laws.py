"""Laws of delays, as the file format has them: ``docs/formats/net.md``."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

Law = Dict[str, Any]
"""A law: its type and its parameters."""


def exponential(rate: float) -> Law:
    """Mean ``1 / rate``."""
    return {"type": "exponential", "rate": rate}


def erlang(shape: int, rate: float) -> Law:
    """``shape`` stages of this rate each; mean ``shape / rate``."""
    return {"type": "erlang", "shape": shape, "rate": rate}


def gamma(shape: float, rate: float) -> Law:
    """As :func:`erlang` with a real shape."""
    return {"type": "gamma", "shape": shape, "rate": rate}


def hyper_exponential(branches: Sequence[Tuple[float, float]]) -> Law:
    """One of several exponential laws: pairs of probability and rate."""
    return {"type": "hyper_exponential", "branches": [{"probability": p, "rate": rate} for p, rate in branches]}


def hypo_exponential(rates: Sequence[float]) -> Law:
    """Exponential stages of these rates, one after the other."""
    return {"type": "hypo_exponential", "rates": list(rates)}


def hyper_erlang(branches: Sequence[Tuple[float, int, float]]) -> Law:
    """One of several Erlang laws: probability, shape and rate of each."""
    return {"type": "hyper_erlang", "branches": [{"probability": p, "shape": shape, "rate": rate} for p, shape, rate in branches]}


def phase_type(initial: Sequence[float], generator: Sequence[Sequence[float]]) -> Law:
    """The time to absorption of a Markov chain: probabilities of its transient states at first, and rates between them."""
    rows: List[List[float]] = [list(row) for row in generator]
    return {"type": "phase_type", "initial": list(initial), "generator": rows}


def uniform(min: float, max: float) -> Law:
    """Any time from ``min`` to ``max``."""
    return {"type": "uniform", "min": min, "max": max}


def deterministic(value: float) -> Law:
    """Always ``value``."""
    return {"type": "deterministic", "value": value}


def truncated_normal(mean: float, sd: float, min: float = 0.0, max: Optional[float] = None) -> Law:
    """A normal law of this mean and standard deviation, cut at both ends."""
    return {"type": "truncated_normal", "mean": mean, "sd": sd, "min": min, "max": max}


def lognormal(mu: float, sigma: float) -> Law:
    """Its logarithm is normal with mean ``mu`` and standard deviation ``sigma``."""
    return {"type": "lognormal", "mu": mu, "sigma": sigma}


def weibull(shape: float, scale: float) -> Law:
    """Survival is ``exp(-(x / scale) ** shape)``."""
    return {"type": "weibull", "shape": shape, "scale": scale}


def expolynomial(pieces: Sequence[Tuple[float, Optional[float], Sequence[Tuple[float, int, float]]]]) -> Law:
    """A density of pieces: from where, to where (None for no end), and its terms ``(coefficient, power, rate)``, each ``coefficient * x ** power *
    exp(-rate * x)``. Its mass is 1."""
    def piece(low: float, high: Optional[float], terms: Sequence[Tuple[float, int, float]]) -> Dict[str, Any]:
        return {"min": low, "max": high, "terms": [{"coefficient": c, "power": power, "rate": rate} for c, power, rate in terms]}

    return {"type": "expolynomial", "pieces": [piece(*each) for each in pieces]}


def empirical(values: Sequence[float]) -> Law:
    """One of these values, each as likely."""
    return {"type": "empirical", "values": [float(value) for value in values]}
