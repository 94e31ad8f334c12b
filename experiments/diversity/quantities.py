"""Functions of a regime's expectations: errors, indices, and how the one hangs on the other."""

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline

from sims.diversity import DEFINITIONS, correlation, normalised_errors
from sims.study.results import Results

Key = tuple[str, str]
"""Definition and version of an index."""
Arrays = Mapping[str, np.ndarray]
"""Products of errors, products of biases and noise covariances, (…, configuration, head, head2)."""
CURVE = 2001
"""Points of a curve between which it is taken for straight."""


def simulated(results: Results, regime: str) -> Arrays:
    """A regime's batches, (B, configuration, head, head2) each."""
    data = results.estimates[regime]
    return {name: data[name].values for name in ("error_matrix", "bias_matrix", "noise_matrix")}


def predicted(theory: xr.Dataset) -> Arrays:
    """A regime's expectations by first-order theory, in the form of the simulation's batches."""
    bias, signal, noise = (theory[f"{k}_matrix"].values for k in ("bias", "signal", "noise"))
    return {
        "error_matrix": bias + signal + noise, "bias_matrix": bias, "noise_matrix": noise,
    }  # fmt: skip


def mean_error(means: Arrays) -> np.ndarray:
    """The ensemble's mean squared error, ``1ᵀM1/H²``."""
    return np.asarray(means["error_matrix"].mean((-2, -1)))


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
    definition, version = key

    def index(means: Arrays) -> np.ndarray:
        if version == "geometric":
            matrix = np.broadcast_to(gram, means["error_matrix"].shape)
        elif version == "errors":
            matrix = normalised_errors(means["error_matrix"])
        else:
            noise = means["noise_matrix"]
            matrix = correlation(
                noise if version == "noise" else means["error_matrix"] - means["bias_matrix"]
            )
        return DEFINITIONS[definition](matrix)

    return index


def over_equiangular(
    key: Key, gram: np.ndarray, equiangular: np.ndarray
) -> Callable[[Arrays], np.ndarray]:
    """Uneven heads' error over that of equiangular heads equally diverse, less 1, as a function.

    Errors are relative to the mean head error. Equiangular heads of any diversity are had from
    those that are there, by cubic splines through their errors and indices as functions of cos² θ.

    Args:
        key: the index.
        gram: of the subspaces, (configuration, head, head2).
        equiangular: which of the configurations are (configuration,).

    Returns:
        A function of expectations, (…, uneven configuration).
    """
    index = index_of(key, gram)
    squares = gram[equiangular, 0, 1]
    order = np.argsort(squares)[::-1]
    # From the least to the most diverse; a spline is linear in what it goes through.
    spline = CubicSpline(squares[order][::-1], np.eye(len(order))[::-1])
    curve = spline(np.linspace(1.0, 0.0, CURVE))

    def gap(means: Arrays) -> np.ndarray:
        diversity, error = np.broadcast_arrays(index(means), relative_errors(means))
        ascending, known = (
            values[..., equiangular][..., order] @ curve.T for values in (diversity, error)
        )
        equal = np.empty_like(error[..., ~equiangular])
        for at in np.ndindex(equal.shape[:-1]):
            equal[at] = np.interp(diversity[..., ~equiangular][at], ascending[at], known[at])
        return np.asarray(error[..., ~equiangular] / equal - 1)

    return gap
