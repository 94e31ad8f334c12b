"""Bayesian scaling laws: fits with diagnostics, claims about exponents, choice between laws.

Beside :mod:`sims.judgement`, which starts without JAX; import this only where a law is fitted.
"""

from sims.scaling.compare import Comparison, compare, law_claim
from sims.scaling.laws import LAWS, Fit, NotConverged, Prior, exponent_claim, fit

__all__ = [
    "LAWS",
    "Comparison",
    "Fit",
    "NotConverged",
    "Prior",
    "compare",
    "exponent_claim",
    "fit",
    "law_claim",
]
