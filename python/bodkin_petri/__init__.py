"""Stochastic Petri nets: built in code, solved with a bound on the error, simulated with intervals, fitted to measured times.

    >>> import bodkin_petri as bp
    >>> net = bp.Net("queue", time_unit="ms")
    >>> net.place("room", 4); net.place("waiting")
    >>> net.timed("arrive", bp.exponential(0.5), inputs=["room"], outputs=["waiting"])
    >>> net.timed("serve", bp.erlang(3, 2.0), inputs=["waiting"], outputs=["room"])
    >>> net.solve(steady=True).of("waiting")

Times are in the net's unit, rates per unit. Answers are numpy arrays of shape [times, columns]; columns are the places, then the measures.
"""

from .laws import (deterministic, empirical, erlang, exponential, expolynomial, gamma, hyper_erlang, hyper_exponential, hypo_exponential, lognormal,
                   phase_type, truncated_normal, uniform, weibull)
from .answers import Passage, Response, Simulation, Solution, Sweep
from .net import Net
from .fitting import Fit, fit

__all__ = ["Fit", "Net", "Passage", "Response", "Simulation", "Solution", "Sweep", "deterministic", "empirical", "erlang", "exponential", "expolynomial", "fit",
           "gamma", "hyper_erlang", "hyper_exponential", "hypo_exponential", "lognormal", "phase_type", "truncated_normal", "uniform", "weibull"]
