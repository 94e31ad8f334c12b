"""Simulation: Monte Carlo estimates of the terms. Independent of :mod:`sims.theory`."""

from sims.simulation.draws import cosine, draw, target_values
from sims.simulation.engine import estimate
from sims.simulation.heads import nw_weights
from sims.simulation.native import with_quick_bits

__all__ = [
    "cosine",
    "draw",
    "estimate",
    "nw_weights",
    "target_values",
    "with_quick_bits",
]
