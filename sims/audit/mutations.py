"""Planted falsehoods: each one mistake that theory or simulation could make."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sims import terms
from sims.audit.problems import ANGLES, LAW_BANDWIDTH, problem, scalars, simulated, truth
from sims.problem import GaussianDesign, Heads, Task
from sims.simulation.heads import nw_weights
from sims.study.specification import Problem
from sims.theory import first_order_arrays, noise_correlation_law, predict

Prediction = dict[str, float]
ROUNDING = 1e-5
"""Margin of the comparison of attention weights, relative."""


@dataclass(frozen=True)
class Mutation:
    """One falsehood.

    Attributes:
        what: the mistake, in a few words.
        road: theory or simulation.
        check: ``terms`` (of the decomposition), ``law`` (of angles) or ``weights``.
        apply: for theory: ``() -> `` predicted terms, or correlations (k,) by the law; for
            simulation: ``data -> data`` (a dataset of batches), or ``() -> `` gaps of weights.
        case: the problem of ``terms``.
        costly: needs an exact solution of its own; left out where the audit is to be quick.
    """

    what: str
    road: str
    check: str
    apply: Callable[..., Any]
    case: str = "gaussian"
    costly: bool = False


# --- the angle law -------------------------------------------------------------------------------


def right_law(**changes: Any) -> np.ndarray:
    """Noise correlations by the angle law at :data:`ANGLES`, or by a changed law."""
    return np.array([float(_law_at(a, **changes)) for a in ANGLES])


def _law_at(angles: tuple[float, float], power: float = 1.0, degrees: bool = False) -> Any:
    radians = np.array(angles) if degrees else np.deg2rad(angles)
    cosine = np.clip(np.abs(np.cos(radians)) ** power, 0, 1)
    return noise_correlation_law(cosine, LAW_BANDWIDTH, 0.0, "gaussian")


def _law_without_floor() -> np.ndarray:
    """Orthogonal heads taken for uncorrelated: (Πρ − 1)/(ρ(1)^{d_k} − 1)."""
    top = 1 / noise_correlation_law(np.zeros(2), LAW_BANDWIDTH, 0.0, "gaussian")
    return np.array([float((_law_at(a) * top - 1) / (top - 1)) for a in ANGLES]) + 1e-12


def _law_with_wide_bandwidth() -> np.ndarray:
    """T = 1 + b in place of 1 + b²."""
    wide = np.sqrt(LAW_BANDWIDTH)
    cosines = [np.cos(np.deg2rad(a)) for a in ANGLES]
    return np.array([float(noise_correlation_law(c, wide, 0.0, "gaussian")) for c in cosines])


# --- terms by theory -----------------------------------------------------------------------------


def _other(case: str = "gaussian", /, **changes: Any) -> Problem:
    """Another problem than the one simulated or predicted."""
    task, heads, n, queries = problem(case)
    parts = (changes.get(name, getattr(heads, name)) for name in ("frames", "kernel", "bandwidth"))
    task = Task(changes.get("design", task.design), task.target, task.noise_sd)
    return Problem(task, Heads(*parts), n + changes.get("more", 0), queries)


def _changed(case: str = "gaussian", /, **changes: Any) -> Prediction:
    return scalars(predict(*_other(case, **changes), order="exact"))


def _edited(case: str = "gaussian", /, **changes: Any) -> Prediction:
    """The right prediction with some terms replaced, and what follows from them."""
    data = truth(case)
    edited = data.assign({k: v(data) for k, v in changes.items()})
    found = edited
    if any(k.startswith("integrated") for k in changes):
        found = edited.assign(terms.scalars(edited.variables))
    found["mse"] = found["squared_bias"] + found["ensemble_variance"]
    return scalars(found)


def _off_diagonal(matrix: xr.DataArray) -> xr.DataArray:
    return matrix * xr.DataArray(np.eye(matrix.shape[-1]), dims=matrix.dims[-2:])


def _heads_of(data: xr.Dataset) -> int:
    return int(data.sizes[terms.HEAD])


def _mean_of_squares(data: xr.Dataset) -> xr.DataArray:
    return xr.DataArray(np.trace(data["integrated_bias_product"].values) / _heads_of(data))


def _without_ratio_bias() -> Prediction:
    """Exact bias less the first-order bias of the ratio of two sums, r_hh E_hh[m − m*]/n."""
    task, heads, n, queries = problem("line")
    at_n, far = (first_order_arrays(task, heads, size, queries).bias for size in (float(n), 1e12))
    bias = truth("line")["bias"].values - np.asarray(at_n - far)
    product = (bias[:, :, None] * bias[:, None, :]).mean(0)
    return _edited(
        "line", integrated_bias_product=lambda d: d["integrated_bias_product"] * 0 + product
    )


# --- terms by simulation -------------------------------------------------------------------------


def _resummed(
    data: xr.Dataset, name: str, change: Callable[[xr.DataArray], xr.DataArray]
) -> xr.Dataset:
    changed = data.assign({name: change(data[name])})
    return changed.assign(terms.scalars(changed.variables))


def _reused_keys(data: xr.Dataset) -> xr.Dataset:
    first = data.isel(batch=slice(1))
    return first.isel(batch=np.zeros(data.sizes[terms.BATCH], int))


def _elsewhere(data: xr.Dataset, **changes: Any) -> xr.Dataset:
    replicates = int(data.attrs["replicates_per_batch"])
    return simulated(_other(**changes), 13, replicates, data.sizes[terms.BATCH])


# --- attention weights ---------------------------------------------------------------------------


def _weights_gap(rounded: Callable[[Any], Any], far: float = 1.0, shift: bool = True) -> np.ndarray:
    """Relative gap of weights by a plain formula to the library's, at a query ``far`` away."""
    task, heads, _, queries = problem()
    keys = task.design.sample(jax.random.key(3), 64)
    query = far * queries[0]
    right = np.asarray(nw_weights(heads, query, keys))
    frames, b = np.asarray(heads.frames), np.asarray(heads.bandwidth)
    with np.errstate(all="ignore"):
        q, k = rounded(np.asarray(query)), rounded(np.asarray(keys))
        gap = np.einsum("hdp,nd->hn", frames, k) - np.einsum("hdp,d->h", frames, q)[:, None]
        square = gap**2
        log = -square / (2 * b[:, None] ** 2)
        weight = (
            np.exp(log - log.max(1, keepdims=True)) if shift else np.exp(log.astype(np.float32))
        )
        weight = weight / weight.sum(1, keepdims=True)
    return np.nan_to_num((weight - right) / right.max(1, keepdims=True), nan=1.0)


def _tf32(values: np.ndarray) -> np.ndarray:
    """Rounded to TF32's 10 bits of mantissa."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2**11) / 2**11, exponent)


def _theory(
    what: str, apply: Callable[[], Prediction], case: str = "gaussian", costly: bool = False
) -> Mutation:
    return Mutation(what, "theory", "terms", apply, case, costly)


def _simulation(
    what: str, apply: Callable[[xr.Dataset], xr.Dataset], case: str = "gaussian",
    costly: bool = False,
) -> Mutation:  # fmt: skip
    return Mutation(what, "simulation", "terms", apply, case, costly)


def _law(what: str, apply: Callable[[], np.ndarray]) -> Mutation:
    return Mutation(what, "theory", "law", apply)


def _weights(what: str, apply: Callable[[], np.ndarray]) -> Mutation:
    return Mutation(what, "simulation", "weights", apply)


RIGHT = (
    _theory("nothing wrong: gaussian heads", lambda: scalars(truth())),
    _theory("nothing wrong: softmax heads", lambda: scalars(truth("softmax")), "softmax", True),
    _theory("nothing wrong: heads on a line", lambda: scalars(truth("line")), "line", True),
    _law("nothing wrong: angle law", right_law),
    _weights("nothing wrong: weights", lambda: _weights_gap(np.asarray)),
)
SIGNAL, NOISE = "integrated_signal_covariance", "integrated_noise_covariance"


def _noise(change: Callable[[xr.DataArray], xr.DataArray]) -> Prediction:
    return _edited(integrated_noise_covariance=lambda d: change(d[NOISE]))


def _signal(change: Callable[[xr.DataArray], xr.DataArray]) -> Prediction:
    return _edited(integrated_signal_covariance=lambda d: change(d[SIGNAL]))


MUTATIONS = (
    _law("cos θ for cos² θ", lambda: right_law(power=0.5)),
    _law("no square root in the angle law", lambda: right_law() ** 2),
    _law("degrees taken for radians", lambda: right_law(degrees=True)),
    _law("orthogonal heads taken for uncorrelated", _law_without_floor),
    _law("b for b² in the angle law", _law_with_wide_bandwidth),
    _theory("1/H for 1 − 1/H", lambda: _edited(
        ensemble_variance=lambda d: (d["variance"] + d["covariance"]) / _heads_of(d))),
    _theory("mean of squared biases", lambda: _edited(squared_bias=_mean_of_squares)),
    _theory("missing ratio bias", _without_ratio_bias, "line", costly=True),
    _theory("b² for b", lambda: _changed(bandwidth=problem().heads.bandwidth ** 2), costly=True),
    _theory("missing signal covariance", lambda: _signal(_off_diagonal)),
    _theory("missing signal variance", lambda: _signal(lambda s: s * 0)),
    _theory("missing noise covariance", lambda: _noise(_off_diagonal)),
    _theory("label noise counted twice", lambda: _noise(lambda s: 2 * s)),
    _theory("σ for σ²", lambda: _noise(lambda s: s / float(problem().task.noise_sd))),
    _theory("all keys attended to alike (noise σ²/n)",
            lambda: _noise(lambda s: s * 0 + float(problem().task.noise_sd) ** 2 / problem().n)),
    _theory("n − 1 for n", lambda: _changed(more=-1), costly=True),
    _theory("isotropic keys assumed", lambda: _changed(design=GaussianDesign(np.eye(4))),
            costly=True),
    _theory("one subspace for all heads",
            lambda: _changed(frames=jnp.stack([problem().heads.frames[0]] * 3)), costly=True),
    _theory("first order at few keys", lambda: scalars(predict(*problem()))),
    _theory("softmax without the key tilt", lambda: _changed("softmax", kernel="gaussian"),
            "softmax", costly=True),
    _theory("√s for s in softmax",
            lambda: _changed("softmax", bandwidth=problem("softmax").heads.bandwidth ** 0.5),
            "softmax", costly=True),
    _simulation("keys reused between batches", _reused_keys),
    _simulation("one key too few", lambda d: _elsewhere(d, more=-1)),
    _simulation("label noise counted twice", lambda d: _resummed(d, NOISE, lambda s: 2 * s)),
    # As it would be with R = 16.
    _simulation("sample covariance over R = 16, not R − 1",
                lambda d: _resummed(d, SIGNAL, lambda s: s * 15 / 16)),
    # Squares of batch means are s²/R too large.
    _simulation("squared bias not corrected, R = 8",
                lambda d: _resummed(d, "integrated_bias_product", lambda s: s + d[SIGNAL] / 8),
                "line", costly=True),
    _simulation("keys drawn afresh for every head",
                lambda d: _resummed(_resummed(d, NOISE, _off_diagonal), SIGNAL, _off_diagonal)),
    _simulation("keys from the wrong design",
                lambda d: _elsewhere(d, design=GaussianDesign(np.eye(4)))),
    _simulation("bandwidth off by 5 %",
                lambda d: _elsewhere(d, bandwidth=1.05 * problem().heads.bandwidth)),
    _weights("TF32 rounding of queries and keys", lambda: _weights_gap(_tf32)),
    _weights("no shift of exponents, far query",
             lambda: _weights_gap(np.asarray, far=25.0, shift=False)),
)  # fmt: skip
"""Every falsehood; a user's own joins by one more entry."""
