"""Functions of a regime's expectations: errors, indices, and how the one hangs on the other."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline

from sims.diversity import DEFINITIONS, correlation, normalised_errors
from sims.estimates import jackknife
from sims.study.results import Results

Key = tuple[str, str]
"""Definition and version of an index."""
Arrays = Mapping[str, np.ndarray]
"""Products of errors, products of biases and noise covariances, (…, configuration, head, head2)."""
CURVE = 2001
"""Points of a curve between which it is taken for straight."""
CONTINUOUS = ("mean", "top", "entropy", "participation")
"""Definitions that do not jump where two heads become one."""
EVERY: list[Key] = [
    (definition, version)
    for version in ("total", "geometric", "noise", "signal", "errors")
    for definition in (DEFINITIONS if version == "errors" else CONTINUOUS)
]
"""The indices of a regime; those of signals are of regimes whose targets are drawn, as a constant m
has none."""
APART = 5.0
"""Standard errors by which two configurations have to differ, by an index or in their errors, for
their order to be taken as known."""


def simulated(results: Results, regime: str) -> Arrays:
    """A regime's batches, (B, configuration, head, head2) each."""
    data = results.estimates[regime]
    return {name: data[name].values for name in ("error_matrix", "bias_matrix", "noise_matrix")}


def predicted(theory: xr.Dataset) -> Arrays:
    """A regime's expectations by first-order theory, in the form of the simulation's batches."""
    bias, signal, noise = (theory[f"{k}_matrix"].values for k in ("bias", "signal", "noise"))
    return {
        "error_matrix": bias + signal + noise,
        "bias_matrix": bias,
        "noise_matrix": noise,
    }


def mean_error(means: Arrays) -> np.ndarray:
    """The ensemble's mean squared error, ``1ᵀM1/H²``."""
    return np.asarray(means["error_matrix"].mean((-2, -1)))


def variance_share(law: Arrays) -> np.ndarray:
    """The share of the ensemble's error that is no squared bias, by theory, (configuration,).

    Args:
        law: expectations by each of theory's sets of draws, (set, configuration, head, head2).
    """
    bias, error = (law[f"{part}_matrix"].mean((0, -2, -1)) for part in ("bias", "error"))
    return np.asarray(1 - bias / error)


def head_error(means: Arrays) -> np.ndarray:
    """The mean of the heads' own mean squared errors, ``tr M/H``."""
    errors = means["error_matrix"]
    return np.asarray(np.trace(errors, axis1=-2, axis2=-1) / errors.shape[-1])


def log_error(means: Arrays) -> np.ndarray:
    """The logarithm of the ensemble's error: its differences are relative."""
    return np.log(mean_error(means))


def relative_errors(means: Arrays) -> np.ndarray:
    """The ensemble's error over the mean of its heads'."""
    return mean_error(means) / head_error(means)


def head_errors(means: Arrays) -> np.ndarray:
    """The mean head error over that of the first configuration, less 1."""
    own = head_error(means)
    return own / own[..., :1] - 1


def over_top(means: Arrays) -> np.ndarray:
    """The ensemble's error over its bound by the largest eigenvalue of M, ``λ_max/H``, less 1."""
    return mean_error(means) * means["error_matrix"].shape[-1] / largest(means) - 1


def largest(means: Arrays) -> np.ndarray:
    """The largest eigenvalue of M."""
    return np.asarray(np.linalg.eigvalsh(means["error_matrix"])[..., -1])


def rises(means: Arrays) -> np.ndarray:
    """By how much the ensemble's error rises from each configuration to each, (…, from, to)."""
    error = mean_error(means)
    return np.asarray(error[..., None, :] / error[..., :, None] - 1)


def relative_rises(means: Arrays) -> np.ndarray:
    """The same of the error over the mean head error.

    Its expectation is that of :func:`rises` where each head's law is the same in all
    configurations; sampling errors that all heads share cancel.
    """
    error = relative_errors(means)
    return np.asarray(error[..., None, :] / error[..., :, None] - 1)


def falls(order: np.ndarray) -> Callable[[Arrays], np.ndarray]:
    """By how much the ensemble's error falls at each step along an order of configurations.

    Args:
        order: places of the configurations, from the first of the steps to the last, (k,).

    Returns:
        A function of expectations, (…, k − 1): ``1 − MSE_next/MSE`` of neighbours in the order.
    """

    def fall(means: Arrays) -> np.ndarray:
        error = mean_error(means)[..., order]
        return np.asarray(1 - error[..., 1:] / error[..., :-1])

    return fall


def index_of(key: Key, gram: np.ndarray) -> Callable[[Arrays], np.ndarray]:
    """The index as a function of expectations, (…, configuration)."""
    return lambda means: indices_of([key], gram)(means)[0]


def indices_of(keys: Sequence[Key], gram: np.ndarray) -> Callable[[Arrays], list[np.ndarray]]:
    """Several indices as a function of expectations, (…, configuration) each.

    Each matrix is made once for all indices of it. Indices of signals, ``signal = errors − biases −
    noise``, are NaN throughout where the draws leave a head without signal variance.
    """

    def index(means: Arrays) -> list[np.ndarray]:
        matrices = {version: matrix_of(version, means, gram) for _, version in keys}
        none = np.full(means["error_matrix"].shape[:-2], np.nan)
        found = ((definition, matrices[version]) for definition, version in keys)
        return [none if m is None else DEFINITIONS[definition](m) for definition, m in found]

    return index


def matrix_of(version: str, means: Arrays, gram: np.ndarray) -> np.ndarray | None:
    """What an index is taken of, (…, configuration, head, head2); None if it does not exist."""
    if version == "geometric":
        return np.broadcast_to(gram, means["error_matrix"].shape)
    if version == "errors":
        return normalised_errors(means["error_matrix"])
    noise = means["noise_matrix"]
    if version == "noise":
        return correlation(noise)
    total = means["error_matrix"] - means["bias_matrix"]
    if version == "total":
        return correlation(total)
    signal = total - noise
    exists = (np.diagonal(signal, axis1=-2, axis2=-1) > 0).all()
    return correlation(signal) if exists else None


def keys_of(regime: Mapping[str, Any]) -> list[Key]:
    """The indices of a regime of the settings: ``only`` those that it names, if it names any."""
    if "only" in regime:
        return [key for key in EVERY if ", ".join(key) in regime["only"]]
    return [key for key in EVERY if key[1] != "signal" or regime.get("drawn")]


def of_all(keys: Sequence[Key], data: Arrays, gram: np.ndarray) -> dict[Key, np.ndarray]:
    """Pseudo-values of every index, (B, C) each."""
    every = indices_of(keys, gram)
    values = jackknife(data, lambda means: np.stack(every(means), axis=-1))
    return {key: values[..., place].copy() for place, key in enumerate(keys)}


def over_equiangular(
    key: Key, gram: np.ndarray, equiangular: np.ndarray
) -> Callable[[Arrays], np.ndarray]:
    """:func:`over_equiangular_each` of a single index, (…, uneven configuration)."""
    return lambda means: over_equiangular_each([key], gram, equiangular)(means)[..., 0]


def over_equiangular_each(
    keys: Sequence[Key], gram: np.ndarray, equiangular: np.ndarray
) -> Callable[[Arrays], np.ndarray]:
    """Uneven heads' error over that of equiangular heads equally diverse, less 1, as a function.

    Errors are relative to the mean head error. Equiangular heads of any diversity are had from
    those that are there, by cubic splines through their errors and indices as functions of cos² θ.

    Args:
        keys: the indices (k).
        gram: of the subspaces, (configuration, head, head2).
        equiangular: which of the configurations are (configuration,).

    Returns:
        A function of expectations, (…, uneven configuration, k).
    """
    index = indices_of(keys, gram)
    squares = gram[equiangular, 0, 1]
    order = np.argsort(squares)[::-1]
    # From the least to the most diverse; a spline is linear in what it goes through.
    spline = CubicSpline(squares[order][::-1], np.eye(len(order))[::-1])
    curve = spline(np.linspace(1.0, 0.0, CURVE))

    def along(values: np.ndarray) -> np.ndarray:
        return np.asarray(values[..., equiangular][..., order] @ curve.T)

    def gaps(means: Arrays) -> np.ndarray:
        errors = relative_errors(means)
        known = along(errors)

        def gap(diversity: np.ndarray) -> np.ndarray:
            error, ascending = errors, along(diversity)
            equal = np.empty_like(error[..., ~equiangular])
            for at in np.ndindex(equal.shape[:-1]):
                equal[at] = np.interp(diversity[..., ~equiangular][at], ascending[at], known[at])
            return np.asarray(error[..., ~equiangular] / equal - 1)

        return np.stack([gap(diversity) for diversity in index(means)], axis=-1)

    return gaps
