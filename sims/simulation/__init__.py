"""Simulation: Monte Carlo estimates of the terms. Independent of :mod:`sims.theory`."""

from sims.simulation.draws import cosine, draw, target_values
from sims.simulation.engine import estimate
from sims.simulation.heads import nw_estimates, nw_weights
from sims.simulation.method import Method
from sims.simulation.native import with_quick_bits
from sims.simulation.plan import Tuning
from sims.simulation.result import efficiency_gain, reached

__all__ = [
    "Method",
    "Tuning",
    "cosine",
    "draw",
    "efficiency_gain",
    "estimate",
    "nw_estimates",
    "nw_weights",
    "reached",
    "target_values",
    "with_quick_bits",
]
