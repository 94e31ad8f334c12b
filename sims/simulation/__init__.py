"""Simulation: Monte Carlo estimates of the terms. Independent of :mod:`sims.theory`."""

from sims.simulation.draws import draw, replicate_key, root_key
from sims.simulation.engine import efficiency_gain, estimate, reached
from sims.simulation.heads import nw_estimates, nw_weights
from sims.simulation.replicate import Linearisation

__all__ = [
    "Linearisation",
    "draw",
    "efficiency_gain",
    "estimate",
    "nw_estimates",
    "nw_weights",
    "reached",
    "replicate_key",
    "root_key",
]
