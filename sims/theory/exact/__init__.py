"""Exact finite-n theory by quadrature: every term at any n, with an error on each number.

Modules, from the lowest level up: ``quadrature`` (node rules), ``laplace`` (one head's integrals),
``pairs`` (the algebra of two), ``pair_rules`` (their quadrature), ``conditioning`` (what heads see
of a Gaussian design), ``truncation`` (where integrals live), ``items`` (heads and pairs at a
query), ``rules`` (nodes by level), ``execution`` (compiled programs on all cores), ``solution``
(arrays of results), ``refinement`` (levels until accurate), ``ambient`` (designs without a
projected law), ``prediction`` (the labelled result). To one per cent: ``tilted`` (points where
kernels reach), ``gram`` (all integrals by one product), ``percent`` (points until accurate).
Derivation: docs/theory.md, "Exact at every n".
"""

from sims.theory.exact.prediction import exact_terms

__all__ = ["exact_terms"]
