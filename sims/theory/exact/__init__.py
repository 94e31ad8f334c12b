"""Exact finite-n theory: every term at any n, with an error on each number.

Modules, from the lowest level up. Points where kernels reach, for any problem: ``tilted`` (points),
``gram`` (all integrals by one product), ``percent`` (points until accurate). Product quadrature,
their check where heads see few dimensions of Gaussian keys: ``quadrature`` (node rules),
``conditioning`` (what heads see), ``truncation`` (where integrals live), ``laplace`` (one head's
integrals), ``pairs`` (those of two), ``refinement`` (levels until accurate). Adaptive radii:
``tables``, ``root``, ``adaptive``. ``solution`` holds arrays of results, ``prediction`` labels
them. Derivation: docs/theory/exact.md.
"""

from sims.theory.exact.prediction import exact_terms

__all__ = ["exact_terms"]
