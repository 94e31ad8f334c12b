"""Bayesian scaling laws: fits with diagnostics, claims about exponents, choice between laws.

Not imported by :mod:`sims.judgement` itself, which starts without JAX: import it where a law is
fitted.
"""

from sims.judgement.scaling.compare import Comparison, compare, law_claim
from sims.judgement.scaling.laws import LAWS, Fit, NotConverged, Prior, exponent_claim, fit

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
