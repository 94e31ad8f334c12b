"""First-order theory: closed forms (``closed_forms``), angle laws (``laws``), redundant views.

All of it is to first order in 1/n; each docstring says where that is valid.
"""

from sims.theory.first_order.closed_forms import (
    FirstOrder,
    Tilt,
    first_order_arrays,
    first_order_terms,
    tilted_mean,
    tilted_product,
)
from sims.theory.first_order.laws import (
    correlation_floor,
    ensemble_factor,
    gaussian_overlap,
    noise_correlation_law,
    noise_covariance_law,
    softmax_overlap,
)
from sims.theory.first_order.views import ViewTerms, view_terms

__all__ = [
    "FirstOrder",
    "Tilt",
    "ViewTerms",
    "correlation_floor",
    "ensemble_factor",
    "first_order_arrays",
    "first_order_terms",
    "gaussian_overlap",
    "noise_correlation_law",
    "noise_covariance_law",
    "softmax_overlap",
    "tilted_mean",
    "tilted_product",
    "view_terms",
]
