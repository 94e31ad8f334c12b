"""Planted falsehoods: each one mistake that theory or simulation could make."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sims import terms
from sims.audit.problems import (
    ANGLES,
    LAW_BANDWIDTH,
    problem,
    scalars,
    simulated,
    truth,
)
from sims.problem import Heads, Task
from sims.simulation.heads import nw_weights
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


def _changed(case: str = "gaussian", /, **changes: Any) -> Prediction:
    """Exact theory of another problem than the one simulated."""
    task, heads, n, queries = problem(case)
    task = Task(
        changes.get("design", task.design), task.target, changes.get("noise", task.noise_sd)
    )
    heads = Heads(
        changes.get("frames", heads.frames),
        changes.get("kernel_used", heads.kernel),
        changes.get("bandwidth", heads.bandwidth),
    )
    return scalars(predict(task, heads, n + changes.get("more", 0), queries, order="exact"))


def _edited(case: str = "gaussian", /, **changes: Any) -> Prediction:
    """The right prediction with some terms replaced, and what follows from them."""
    data = truth(case)
    edited = data.assign({k: v(data) for k, v in changes.items()})
    found = terms.summarise(edited) if any(k.startswith("integrated") for k in changes) else edited
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


def _first_order() -> Prediction:
    return scalars(predict(*problem()))


# --- terms by simulation -------------------------------------------------------------------------


def _resummed(data: xr.Dataset, **changes: Any) -> xr.Dataset:
    return terms.summarise(data.assign({k: v(data) for k, v in changes.items()}))


def _reused_keys(data: xr.Dataset) -> xr.Dataset:
    first = data.isel(batch=slice(1))
    return first.isel(batch=np.zeros(data.sizes[terms.BATCH], int))


def _elsewhere(data: xr.Dataset, **changes: Any) -> xr.Dataset:
    """The simulation of another problem."""
    task, heads, n, _ = problem()
    at = problem()._replace(
        task=Task(changes.get("design", task.design), task.target, task.noise_sd),
        heads=Heads(heads.frames, "gaussian", changes.get("bandwidth", heads.bandwidth)),
        n=n + changes.get("more", 0),
    )
    replicates = int(data.attrs["replicates_per_batch"])
    return simulated(at, 13, replicates, data.sizes[terms.BATCH])


def _by_replicates(data: xr.Dataset) -> xr.Dataset:
    """Sample covariances divided by R in place of R − 1, as they would be with R = 16."""
    return _resummed(
        data, integrated_signal_covariance=lambda d: d["integrated_signal_covariance"] * 15 / 16
    )


def _raw_squared_bias(data: xr.Dataset) -> xr.Dataset:
    """Squares of batch means, s²/R too large, as they would be with R = 8."""
    return _resummed(
        data,
        integrated_bias_product=lambda d: (
            d["integrated_bias_product"] + d["integrated_signal_covariance"] / 8
        ),
    )


def _shrunk(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    return lambda data: _resummed(data, **{name: lambda d: _off_diagonal(d[name])})


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


def _right(data: xr.Dataset | None = None) -> Any:
    return scalars(truth()) if data is None else data


RIGHT = (
    Mutation("nothing wrong: gaussian heads", "theory", "terms", _right),
    Mutation(
        "nothing wrong: softmax heads",
        "theory",
        "terms",
        lambda: scalars(truth("softmax")),
        "softmax",
        costly=True,
    ),
    Mutation(
        "nothing wrong: heads on a line",
        "theory",
        "terms",
        lambda: scalars(truth("line")),
        "line",
        costly=True,
    ),
    Mutation("nothing wrong: angle law", "theory", "law", right_law),
    Mutation("nothing wrong: weights", "simulation", "weights", lambda: _weights_gap(np.asarray)),
)
SIGNAL, NOISE = "integrated_signal_covariance", "integrated_noise_covariance"
MUTATIONS = (
    Mutation("cos θ for cos² θ", "theory", "law", lambda: right_law(power=0.5)),
    Mutation("no square root in the angle law", "theory", "law", lambda: right_law() ** 2),
    Mutation("degrees taken for radians", "theory", "law", lambda: right_law(degrees=True)),
    Mutation("orthogonal heads taken for uncorrelated", "theory", "law", _law_without_floor),
    Mutation("b for b² in the angle law", "theory", "law", _law_with_wide_bandwidth),
    Mutation(
        "1/H for 1 − 1/H", "theory", "terms",
        lambda: _edited(
            ensemble_variance=lambda d: (d["variance"] + d["covariance"]) / _heads_of(d)
        ),
    ),
    Mutation(
        "mean of squared biases", "theory", "terms", lambda: _edited(squared_bias=_mean_of_squares)
    ),
    Mutation("missing ratio bias", "theory", "terms", _without_ratio_bias, "line", costly=True),
    Mutation(
        "b² for b", "theory", "terms", lambda: _changed(bandwidth=problem().heads.bandwidth ** 2),
        costly=True,
    ),
    Mutation(
        "missing signal covariance", "theory", "terms",
        lambda: _edited(integrated_signal_covariance=lambda d: _off_diagonal(d[SIGNAL])),
    ),
    Mutation(
        "missing signal variance", "theory", "terms",
        lambda: _edited(integrated_signal_covariance=lambda d: d[SIGNAL] * 0),
    ),
    Mutation(
        "missing noise covariance", "theory", "terms",
        lambda: _edited(integrated_noise_covariance=lambda d: _off_diagonal(d[NOISE])),
    ),
    Mutation(
        "label noise counted twice", "theory", "terms",
        lambda: _edited(integrated_noise_covariance=lambda d: 2 * d[NOISE]),
    ),
    Mutation(
        "σ for σ²", "theory", "terms",
        lambda: _edited(
            integrated_noise_covariance=lambda d: d[NOISE] / float(problem().task.noise_sd)
        ),
    ),
    Mutation(
        "all keys attended to alike (noise σ²/n)", "theory", "terms",
        lambda: _edited(
            integrated_noise_covariance=lambda d: (
                d[NOISE] * 0 + float(problem().task.noise_sd) ** 2 / problem().n
            )
        ),
    ),
    Mutation("n − 1 for n", "theory", "terms", lambda: _changed(more=-1), costly=True),
    Mutation(
        "isotropic keys assumed", "theory", "terms",
        lambda: _changed(design=type(problem().task.design)(np.eye(4))), costly=True,
    ),
    Mutation(
        "one subspace for all heads", "theory", "terms",
        lambda: _changed(frames=jnp.stack([problem().heads.frames[0]] * 3)), costly=True,
    ),
    Mutation("first order at few keys", "theory", "terms", _first_order),
    Mutation(
        "softmax without the key tilt", "theory", "terms",
        lambda: _changed("softmax", kernel_used="gaussian"), "softmax", costly=True,
    ),
    Mutation(
        "√s for s in softmax", "theory", "terms",
        lambda: _changed("softmax", bandwidth=problem("softmax").heads.bandwidth ** 0.5), "softmax",
        costly=True,
    ),
    Mutation("keys reused between batches", "simulation", "terms", _reused_keys),
    Mutation("one key too few", "simulation", "terms", lambda d: _elsewhere(d, more=-1)),
    Mutation(
        "label noise counted twice", "simulation", "terms",
        lambda d: _resummed(d, **{NOISE: lambda e: 2 * e[NOISE]}),
    ),
    Mutation("sample covariance over R = 16, not R − 1", "simulation", "terms", _by_replicates),
    Mutation("squared bias not corrected, R = 8", "simulation", "terms", _raw_squared_bias, "line",
             costly=True),
    Mutation("keys drawn afresh for every head", "simulation", "terms",
             lambda d: _shrunk(SIGNAL)(_shrunk(NOISE)(d))),
    Mutation(
        "keys from the wrong design", "simulation", "terms",
        lambda d: _elsewhere(d, design=type(problem().task.design)(np.eye(4))),
    ),
    Mutation("bandwidth off by 5 %", "simulation", "terms",
             lambda d: _elsewhere(d, bandwidth=1.05 * problem().heads.bandwidth)),
    Mutation("TF32 rounding of queries and keys", "simulation", "weights",
             lambda: _weights_gap(_tf32)),
    Mutation("no shift of exponents, far query", "simulation", "weights",
             lambda: _weights_gap(np.asarray, far=25.0, shift=False)),
)  # fmt: skip
"""Every falsehood; a user's own joins by one more entry."""
