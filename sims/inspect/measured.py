"""What a layer's heads do with the inputs that it meets: keys, noise, contributions, ablations.

Inputs are sequences (S, T, d) of the attention module. Every number is a mean over sequences or a
function of such means, and its Monte Carlo standard error (MCSE) takes sequences as independent.
"""

from collections.abc import Callable, Mapping

import numpy as np

from sims.diversity import DEFINITIONS
from sims.errors import InputError
from sims.estimates import jackknife, mcse
from sims.inspect.ablation import Calibration
from sims.inspect.geometry import Arrays
from sims.inspect.layouts import Layer
from sims.inspect.patterns import Rule, projections, weights

FEWEST = 4
"""Sequences: two to calibrate on, two to ablate."""
PER_DIMENSION = 10
"""Tokens for each dimension of a head, at least: correlations of fewer are spurious."""
QUANTILES = (0.1, 0.5, 0.9)
Named = tuple[tuple[str, ...], np.ndarray]
Means = Mapping[str, np.ndarray]
Statistic = Callable[[Means], np.ndarray]
ROUNDING = 1e-12
"""Variance of the output below this share of its mean square is rounding."""
LOOK = 4.0
"""Heads are removed while the calibration error is below this multiple of the tolerance."""


def checked(name: str, inputs: np.ndarray, layer: Layer) -> np.ndarray:
    """Inputs of a layer, if they can carry the report.

    Raises:
        InputError: they are no finite numbers (S, T, d), or too few.
    """
    d, d_k = layer.matrices.key.shape[1:]
    if inputs.dtype.kind != "f" and inputs.dtype.name != "bfloat16":
        raise InputError(name, str(inputs.dtype), "floating-point numbers (sequence, token, d)")
    if inputs.ndim != 3 or inputs.shape[2] != d:
        raise InputError(name, inputs.shape, f"shape (sequence, token, {d})")
    count, tokens = inputs.shape[:2]
    if count < FEWEST:
        raise InputError(f"{name}: sequences", count, f"at least {FEWEST}")
    if count * tokens < PER_DIMENSION * d_k:
        allowed = f"at least {PER_DIMENSION} for each of the {d_k} dimensions of a head"
        raise InputError(f"{name}: tokens", count * tokens, allowed)
    if not np.isfinite(inputs).all():
        raise InputError(name, "NaN or infinity", "finite numbers, without padding")
    return inputs


def measured(layer: Layer, inputs: np.ndarray, rule: Rule, tolerance: float) -> Arrays:
    """Everything that is measured of a layer on its inputs, by name, with ``_mcse`` beside it.

    Args:
        layer: the heads.
        inputs: (S, T, d), as :func:`checked` returns them.
        rule: how scores become weights.
        tolerance: output error up to which heads count as redundant.

    Raises:
        InputError: sequences are longer than the model's window, or the output does not vary.
    """
    if rule.window is not None and inputs.shape[1] > rule.window:
        raise InputError("tokens", inputs.shape[1], f"at most the sliding window {rule.window}")
    heads, width, _ = layer.matrices.output.shape
    means: dict[str, list[np.ndarray]] = {}
    first, second = np.zeros(heads * width), np.zeros((heads * width, heads * width))
    calibration = Calibration(layer.matrices.output)
    for place, x in enumerate(inputs):
        query, key, value = projections(layer, x.astype(float), rule)
        seen = weights(layer, query, key, rule)
        outputs = _outputs(layer, seen, value)
        moment = outputs.T @ outputs
        if place % 2 == 0:
            first += outputs.sum(0)
            second += moment
        shares = seen.reshape(heads, -1)
        by_head = outputs.mean(0).reshape(heads, 1, width) @ layer.matrices.output
        found = {
            **_effective_keys(seen, rule.causal),
            "typical_effective_keys": np.median(1 / (seen**2).sum(-1), axis=-1).mean(),
            "noise": shares @ shares.T / len(x),
            "first": by_head[:, 0],
            "second": calibration.written(moment) / len(x),
            "keys": key.swapaxes(-1, -2) @ key / len(x),
            "queries": _by_key_head(query, len(key)) / len(x),
        }
        for name, values in found.items():
            means.setdefault(name, []).append(values)
    batches = {name: np.stack(values) for name, values in means.items()}
    whole = calibration.written(second).sum()
    calibration.finish(first, second, -(-len(inputs) // 2) * inputs.shape[1])
    if not calibration.contributions.sum() > ROUNDING * whole:
        raise InputError(layer.module, "an output without variance", "heads that have one")
    results: dict[str, Named] = {}
    for name in ("effective_keys", "effective_keys_without_first", "effective_share"):
        results[name] = ("head", "quantile"), batches[name].mean(0)
        results[f"{name}_mcse"] = ("head", "quantile"), mcse(batches[name])
    typical = batches["typical_effective_keys"]
    results["typical_effective_keys"] = (), typical.mean(0)
    results["typical_effective_keys_mcse"] = (), mcse(typical)
    for name, parts, covariance in COVARIANCES:
        for what, (dims, summary) in SUMMARIES.items():
            statistic = _composed(summary, covariance)
            results |= _estimated(f"{name}_{what}", dims, batches, parts, statistic)
    for name, profile in (("kq_svd_error", _kq_profile), ("k_svd_error", _k_profile)):
        dims, parts = ("key_head", "rank_kept"), ("keys", "queries")
        results |= _estimated(name, dims, batches, parts, profile)
    return results | _ablated(layer, inputs[1::2], rule, calibration, tolerance)


def _estimated(
    name: str, dims: tuple[str, ...], batches: Means, parts: tuple[str, ...], statistic: Statistic
) -> dict[str, Named]:
    """A function of means of sequences, and its MCSE, by the jackknife."""
    values = jackknife({part: batches[part] for part in parts}, statistic)
    return {name: (dims, values.mean(0)), f"{name}_mcse": (dims, mcse(values))}


def _composed(outer: Callable[[np.ndarray], np.ndarray], inner: Statistic) -> Statistic:
    return lambda means: outer(inner(means))


def _outputs(layer: Layer, seen: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Outputs of all heads side by side, (T, H·d_v)."""
    by_head = seen @ value[layer.key_head]
    return np.asarray(by_head.swapaxes(0, 1).reshape(seen.shape[1], -1))


def _effective_keys(seen: np.ndarray, causal: bool) -> dict[str, np.ndarray]:
    """Quantiles over tokens of ``1/Σw²``, each (H, 3): all keys, without the first, as a share.

    The share is of the keys that a token may see.
    """
    keys = 1 / (seen**2).sum(-1)
    later = seen[:, 1:, 1:]
    kept = later.sum(-1)
    rest = kept**2 / np.maximum((later**2).sum(-1), np.finfo(float).tiny)
    visible = np.arange(1, seen.shape[1] + 1) if causal else seen.shape[1]
    named = {
        "effective_keys": keys,
        "effective_keys_without_first": rest,
        "effective_share": keys / visible,
    }
    return {name: np.quantile(v, QUANTILES, axis=-1).T for name, v in named.items()}


def _by_key_head(query: np.ndarray, keys: int) -> np.ndarray:
    """``Σ qqᵀ`` of the queries that read each key head, (H_kv, d_k, d_k)."""
    grouped = query.reshape(keys, -1, query.shape[-1])
    return grouped.swapaxes(-1, -2) @ grouped


def _noise(means: Means) -> np.ndarray:
    """``N_hg = E Σ_i w_hi w_gi``: covariance of heads' label noise of variance 1."""
    return means["noise"]


def _contributions(means: Means) -> np.ndarray:
    """Covariance over tokens of the contributions ``o_hW_O,h``, summed over features."""
    first = means["first"]
    return means["second"] - first @ first.swapaxes(-1, -2)


COVARIANCES: tuple[tuple[str, tuple[str, ...], Statistic], ...] = (
    ("noise", ("noise",), _noise),
    ("contribution", ("first", "second"), _contributions),
)
"""Covariances of heads: name, the means that they are made of, and how."""


def _correlation(covariance: np.ndarray) -> np.ndarray:
    """Correlations; 0 beside a head without variance."""
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(variance > 0, variance, np.inf))
    r = covariance / scale[..., :, None] / scale[..., None, :]
    own = np.eye(covariance.shape[-1], dtype=bool)
    return np.where(own, 1.0, r)


def _indices(covariance: np.ndarray) -> np.ndarray:
    r = _correlation(covariance)
    if r.shape[-1] < 2:
        return np.full((*r.shape[:-2], len(DEFINITIONS)), np.nan)
    return np.stack([definition(r) for definition in DEFINITIONS.values()], axis=-1)


def _kept(covariance: np.ndarray) -> np.ndarray:
    """Variance of the mean over the mean variance: 1 of equal heads, 1/H of uncorrelated ones."""
    heads = covariance.shape[-1]
    total = np.trace(covariance, axis1=-2, axis2=-1)
    return covariance.sum((-2, -1)) / (heads * total)


SUMMARIES: dict[str, tuple[tuple[str, ...], Callable[[np.ndarray], np.ndarray]]] = {
    "correlation": (("head", "head2"), _correlation),
    "index": (("definition",), _indices),
    "kept": ((), _kept),
}
"""Of a covariance of heads, by name: dimensions and function."""


def _kq_profile(moments: Means) -> np.ndarray:
    """KQ-SVD's error of each rank 0 … d_k − 1, as a share of the scores' squares.

    ``Σ_{i>r} σ_i²/Σσ_i²`` with σ_i² the eigenvalues of Σ_QΣ_K; no rank-r cache has a smaller one.
    """
    values, vectors = np.linalg.eigh(moments["queries"])
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    squares = np.linalg.eigvalsh(root.swapaxes(-1, -2) @ moments["keys"] @ root)
    return _tails(np.maximum(squares, 0.0))


def _k_profile(moments: Means) -> np.ndarray:
    """K-SVD's error of each rank, as :func:`_kq_profile`: keys kept in their principal subspace."""
    values, vectors = np.linalg.eigh(moments["keys"])
    seen = (vectors * (moments["queries"] @ vectors)).sum(-2)
    return _tails(np.maximum(values, 0.0) * seen)


def _tails(ascending: np.ndarray) -> np.ndarray:
    """What is lost if all but the last r of these parts are, r = 0 … n − 1, as shares."""
    total = ascending.sum(-1, keepdims=True)
    return np.asarray(np.cumsum(ascending, -1)[..., ::-1] / np.where(total > 0, total, 1.0))


def _ablated(
    layer: Layer, inputs: np.ndarray, rule: Rule, calibration: Calibration, tolerance: float
) -> dict[str, Named]:
    """Output errors of removals on held-out sequences, as shares of the output's variance."""
    heads = len(layer.matrices.query)
    if heads < 2:
        return {}
    order = calibration.removal_order(LOOK * tolerance)
    everyone, pair = range(heads), calibration.alike
    steps = [calibration.removal(order[: r + 1], everyone) for r in range(len(order))]
    merged, pruned = (calibration.removal(pair[1:], kept) for kept in (pair, ()))
    flat = layer.matrices.output.reshape(-1, layer.matrices.output.shape[-1])
    changes = [flat, merged, pruned, *steps]
    squares = []
    for x in inputs:
        query, key, value = projections(layer, x.astype(float), rule)
        off = _outputs(layer, weights(layer, query, key, rule), value) - calibration.mean
        squares.append([float(((off @ change) ** 2).sum()) for change in changes])
    batches = {"squares": np.array(squares)}
    errors = jackknife(batches, lambda m: m["squares"][..., 1:] / m["squares"][..., :1])
    mean, error = errors.mean(0), mcse(errors)
    padded = np.full((3, heads), np.nan)
    padded[0, : len(order)], padded[1, : len(order)], padded[2, : len(order)] = (
        order,
        mean[2:],
        error[2:],
    )
    within = mean[2:] + 2 * error[2:] <= tolerance
    count = len(within) if within.all() else int(np.argmin(within))
    return {
        "alike": (("of_pair",), np.array(pair)),
        "merge_error": ((), mean[0]),
        "merge_error_mcse": ((), error[0]),
        "prune_error": ((), mean[1]),
        "prune_error_mcse": ((), error[1]),
        "removal_order": (("removed",), padded[0]),
        "removal_error": (("removed",), padded[1]),
        "removal_error_mcse": (("removed",), padded[2]),
        "redundant_heads": ((), np.array(count)),
        "redundant_share": ((), np.array(count / heads)),
    }
