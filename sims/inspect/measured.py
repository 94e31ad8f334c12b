"""Measurements of a layer's heads on its inputs: keys, noise, contributions, ablations.

Inputs are sequences (T, d) of the attention module, without padding. Every number is a mean over
sequences or a function of such means, and its Monte Carlo standard error (MCSE) assumes that
sequences are independent.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from sims.base.errors import InputError
from sims.base.estimates import jackknife, mcse
from sims.inspect.ablation import Calibration, Removal
from sims.inspect.geometry import Arrays, correlation, indices, share_of_average
from sims.inspect.layer import Layer
from sims.inspect.patterns import Rule, projections, weights
from sims.inspect.profiles import compression, k_profile, kq_profile, rank_within

FEWEST = 4
"""Minimum number of sequences: two for calibration, two for ablation."""
COPY = 0.02
"""Largest difference of a sequence from its copy; rounding to bfloat16 is below it."""
PER_DIMENSION = 10
"""Minimum tokens per dimension of a head; fewer give spurious correlations."""
QUANTILES = (0.1, 0.5, 0.9)
Means = Mapping[str, np.ndarray]
Statistic = Callable[[Means], np.ndarray]
ROUNDING = 1e-12
"""Variance of the output below this share of its mean square is rounding."""
LOOK = 4.0
"""Heads are removed while the calibration error is below this multiple of the tolerance."""
WEIGHTS = 2**23
"""Maximum number of attention weights in memory, unless a single query has more."""


def sequences_of(
    name: str, inputs: np.ndarray, mask: np.ndarray | None, layer: Layer
) -> list[np.ndarray]:
    """Sequences (T, d) of a layer's inputs without padding, after checks.

    Args:
        name: name of the inputs, for errors.
        inputs: (S, T, d).
        mask: whether a token is not padding, (S, T); None keeps every token.
        layer: the heads that read them.

    Raises:
        InputError: inputs are not finite numbers (S, T, d) or too few, or the mask does not fit.
    """
    d, d_k = layer.matrices.key.shape[1:]
    if inputs.dtype.kind != "f" and inputs.dtype.name != "bfloat16":
        raise InputError(name, str(inputs.dtype), "floating-point numbers (sequence, token, d)")
    if inputs.ndim != 3 or inputs.shape[2] != d:
        raise InputError(name, inputs.shape, f"shape (sequence, token, {d})")
    visible = np.ones(inputs.shape[:2], bool) if mask is None else _check_mask(mask, inputs)
    sequences = [x[tokens] for x, tokens in zip(inputs, visible, strict=True)]
    if (shortest := min(map(len, sequences), default=0)) < 2:
        raise InputError(f"{name}: tokens of a sequence", shortest, "at least 2")
    if not np.isfinite(inputs[visible]).all():
        raise InputError(name, "NaN or infinity", "finite numbers; mark padding by attention_mask")
    sequences = distinct(sequences)
    if len(sequences) < FEWEST:
        raise InputError(f"{name}: sequences", len(sequences), f"at least {FEWEST} different ones")
    if (tokens := sum(map(len, sequences))) < PER_DIMENSION * d_k:
        allowed = f"at least {PER_DIMENSION} for each of the {d_k} dimensions of a head"
        raise InputError(f"{name}: tokens", tokens, allowed)
    return sequences


def distinct(sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sequences (T, d), the longest first, without copies and shortened copies of earlier ones.

    Copies differ by at most :data:`COPY` standard deviations of a feature, in the root mean square.
    """
    deviation = np.concatenate(sequences).std(0, dtype=float)
    scale = np.where(deviation > 0, deviation, 1.0)
    kept: list[np.ndarray] = []

    def copies(x: np.ndarray, y: np.ndarray) -> bool:
        return bool((((x - y) / scale) ** 2).mean() <= COPY**2)

    for x in sorted(sequences, key=len, reverse=True):
        size = len(x)
        near = [y for y in kept if copies(x[-1], y[size - 1])]
        if not any(copies(x, y[:size]) for y in near):
            kept.append(x)
    return kept


def _check_mask(mask: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """True where a token is not padding, (S, T), for inputs (S, T, d).

    Raises:
        InputError: the mask does not fit, or leaves gaps.
    """
    if mask.shape != inputs.shape[:2] or not np.isin(mask, (0, 1)).all():
        got = f"{mask.dtype} of shape {mask.shape}"
        raise InputError("attention_mask", got, f"0 and 1 of shape {inputs.shape[:2]}")
    edges = np.diff(mask.astype(int), axis=1, prepend=0, append=0)
    if ((edges > 0).sum(1) != 1).any():
        raise InputError("attention_mask", "gaps", "one run of tokens per sequence")
    return mask.astype(bool)


def moments_of(sequences: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d) and covariance (d, d) of the tokens of sequences."""
    tokens = sum(map(len, sequences))
    d = sequences[0].shape[1]
    mean = np.zeros(d)
    second = np.zeros((d, d))
    for sequence in sequences:
        x = sequence.astype(float)
        mean += x.sum(0) / tokens
        second += x.T @ x
    second /= tokens
    second -= np.outer(mean, mean)
    return mean, second


def measured(layer: Layer, sequences: Sequence[np.ndarray], rule: Rule, tolerance: float) -> Arrays:
    """Measurements of a layer on its inputs, by name, each with its ``_mcse``.

    Args:
        layer: the heads.
        sequences: (T, d) each, as :func:`sequences_of` returns them.
        rule: attention rule.
        tolerance: output error up to which heads count as redundant.

    Raises:
        InputError: sequences are longer than the model's window, or the output does not vary.
    """
    longest = max(map(len, sequences))
    if longest > rule.window:
        raise InputError("tokens", longest, f"at most the sliding window {rule.window:g}")
    means: dict[str, list[np.ndarray]] = {}
    calibration = Calibration(layer.matrices.output)
    heads, width, _ = layer.matrices.output.shape
    first = np.zeros(heads * width)
    second = np.zeros((heads * width, heads * width))
    for place, x in enumerate(sequences):
        summaries, outputs = _attention(layer, x.astype(float), rule)
        moment = outputs.T @ outputs
        if place % 2 == 0:
            first += outputs.sum(0)
            second += moment
        by_head = outputs.mean(0).reshape(heads, 1, width) @ layer.matrices.output
        summaries["first"] = by_head[:, 0]
        summaries["second"] = calibration.written(moment) / len(x)
        for name, values in summaries.items():
            means.setdefault(name, []).append(values)
    batches = {name: np.stack(values) for name, values in means.items()}
    square = calibration.written(second).sum()
    calibration.finish(first, second, sum(map(len, sequences[::2])))
    del second, moment
    if not calibration.contributions.sum() > ROUNDING * square:
        raise InputError(layer.module, "an output without variance", "heads whose output varies")
    results = _summarize(batches)
    moments = {name: batches[name][::2].mean(0) for name in PROFILED}
    del batches, means
    caches = {}
    for name in CACHES:
        rank = rank_within(results[f"{name}_error"][1], tolerance)
        caches[name] = compression(name, moments, rank)
    return results | _ablate(layer, sequences[1::2], rule, calibration, tolerance, caches)


def _summarize(batches: Means) -> dict[str, Any]:
    """Means over sequences, and functions of them by the jackknife, each with its MCSE."""
    values = {name: (dims, batches[name]) for name, dims in MEANS.items()}
    for name, (parts, covariance) in COVARIANCES.items():
        moments = {part: batches[part] for part in parts}
        for quantity, (dims, summary) in SUMMARIES.items():
            pseudo_values = jackknife(moments, _compose(summary, covariance))
            values[f"{name}_{quantity}"] = (dims, pseudo_values)
    for name, profile in CACHES.items():
        profiles = []
        for head in range(batches["keys"].shape[1]):
            moments = {part: batches[part][:, head] for part in PROFILED}
            profiles.append(jackknife(moments, profile))
        values[f"{name}_error"] = (("key_head", "rank_kept"), np.stack(profiles, axis=1))
    results = {}
    for name, (dims, batch_values) in values.items():
        results[name] = (dims, batch_values.mean(0))
        results[f"{name}_mcse"] = (dims, mcse(batch_values))
    return results


def _compose(outer: Callable[[np.ndarray], np.ndarray], inner: Statistic) -> Statistic:
    return lambda means: outer(inner(means))


def _blocks(
    layer: Layer, query: np.ndarray, key: np.ndarray, value: np.ndarray, rule: Rule
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Attention weights (H, rows, T) and outputs (rows, H·d_v) for successive blocks of queries."""
    heads, tokens = query.shape[:2]
    size = max(1, WEIGHTS // (heads * tokens))
    for start in range(0, tokens, size):
        weight = weights(layer, query, key, rule, slice(start, start + size))
        by_head = weight @ value[layer.key_head]
        yield weight, by_head.swapaxes(0, 1).reshape(weight.shape[1], -1)


def _attention(layer: Layer, x: np.ndarray, rule: Rule) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Summaries of the attention of a sequence (T, d), by name, and outputs (T, H·d_v).

    Effective keys ``1/Σw²`` are quantiles over tokens, (H, 3): of all keys, without the first, and
    as a share of the keys that a token may see. Noise is a mean over tokens of ``Σ_i w_hi w_gi``;
    its correlation at a token is that over the geometric mean of ``Σ w_h²`` and ``Σ w_g²``.
    Moments of queries are those of the queries that read each key head, (H_kv, d_k, d_k).
    """
    query, key, value = projections(layer, x, rule)
    heads, tokens = query.shape[:2]
    tiny = np.finfo(float).tiny
    noise, correlations = np.zeros((2, heads, heads))
    outputs = []
    keys = []
    keys_without_first = []
    for weight, output in _blocks(layer, query, key, value, rule):
        outputs.append(output)
        by_token = weight.swapaxes(0, 1)
        products = by_token @ by_token.swapaxes(-1, -2)
        squares = np.diagonal(products, axis1=-2, axis2=-1).copy()
        noise += products.sum(0)
        products /= np.sqrt(squares)[:, :, None] * np.sqrt(squares)[:, None]
        correlations += products.sum(0)
        later = weight[..., 1:]
        keys_without_first.append(later.sum(-1) ** 2 / np.maximum((later**2).sum(-1), tiny))
        keys.append(1 / squares.T)
    effective = np.concatenate(keys, axis=1)
    distributions = {
        "effective_keys": effective,
        "effective_keys_without_first": np.concatenate(keys_without_first, axis=1)[:, 1:],
        "effective_share": effective / (np.arange(1, tokens + 1) if rule.causal else tokens),
    }
    summaries = {k: np.quantile(v, QUANTILES, axis=-1).T for k, v in distributions.items()}
    grouped = query.reshape(len(key), -1, query.shape[-1])
    return summaries | {
        "typical_effective_keys": np.median(effective, axis=-1).mean(),
        "noise": noise / tokens,
        "token_noise_correlation": correlations / tokens,
        "keys": key.swapaxes(-1, -2) @ key / tokens,
        "queries": grouped.swapaxes(-1, -2) @ grouped / tokens,
    }, np.concatenate(outputs)


def _contributions(means: Means) -> np.ndarray:
    """Covariance over tokens of the contributions ``o_hW_O,h``, summed over features."""
    first = means["first"]
    return means["second"] - first @ first.swapaxes(-1, -2)


COVARIANCES: dict[str, tuple[tuple[str, ...], Statistic]] = {
    "noise": (("noise",), itemgetter("noise")),
    "contribution": (("first", "second"), _contributions),
}
"""Covariances of heads: name to the means that they use, and their function.

That of label noise of variance 1 is ``N_hg = E Σ_i w_hi w_gi``.
"""
MEANS: dict[str, tuple[str, ...]] = {
    "effective_keys": ("head", "quantile"),
    "effective_keys_without_first": ("head", "quantile"),
    "effective_share": ("head", "quantile"),
    "typical_effective_keys": (),
    "token_noise_correlation": ("head", "head2"),
}
"""Dimensions of means over sequences."""
CACHES = {"kq_svd": kq_profile, "k_svd": k_profile}
"""Compressed caches of keys, and their errors at each rank."""
PROFILED = ("keys", "queries")
"""Second moments that determine compressed caches."""


def _correlation(covariance: np.ndarray) -> np.ndarray:
    """Correlations; 0 for pairs with a head without variance."""
    r = np.nan_to_num(correlation(covariance))
    return np.where(np.eye(r.shape[-1], dtype=bool), 1.0, r)


def _indices(covariance: np.ndarray) -> np.ndarray:
    return indices(_correlation(covariance))


SUMMARIES: dict[str, tuple[tuple[str, ...], Callable[[np.ndarray], np.ndarray]]] = {
    "correlation": (("head", "head2"), _correlation),
    "index": (("definition",), _indices),
    "kept": ((), share_of_average),
}
"""Numbers from a covariance of heads, by name: dimensions and function."""


def _attend(
    layer: Layer, query: np.ndarray, key: np.ndarray, value: np.ndarray, rule: Rule
) -> np.ndarray:
    """Outputs (T, H·d_v) of a sequence."""
    return np.concatenate([output for _, output in _blocks(layer, query, key, value, rule)])


def _ablate(
    layer: Layer,
    sequences: Sequence[np.ndarray],
    rule: Rule,
    calibration: Calibration,
    tolerance: float,
    caches: Mapping[str, np.ndarray],
) -> dict[str, Any]:
    """Output errors of caches and removals on held-out sequences, as shares of its variance."""
    heads = len(layer.matrices.query)
    removals = []
    if heads > 1:
        order = calibration.removal_order(LOOK * tolerance)
        pair = calibration.alike
        kept = sorted({*range(heads)} - {*order})
        removals = [
            Removal(calibration, pair[::-1], 1),
            Removal(calibration, pair[1:], 1),
            Removal(calibration, [*order, *kept], len(order)),
        ]
    squares = []
    for x in sequences:
        query, key, value = projections(layer, x.astype(float), rule)
        outputs = _attend(layer, query, key, value, rule)
        changes = []
        for cache in caches.values():
            compressed = _attend(layer, query, key @ cache, value, rule)
            changes.append(calibration.square(compressed - outputs))
        outputs -= calibration.mean
        for removal in removals:
            changes += removal.squares(outputs)
        squares.append([calibration.square(outputs), *changes])
    batches = {"squares": np.array(squares)}
    errors = jackknife(batches, lambda m: m["squares"][..., 1:] / m["squares"][..., :1])
    mean = errors.mean(0)
    error = mcse(errors)
    results: dict[str, Any] = {}
    single = [*(f"{name}_output" for name in caches), "merge", "prune"]
    for name, value, deviation in zip(single, mean, error, strict=False):
        results[f"{name}_error"] = value
        results[f"{name}_error_mcse"] = deviation
    if heads < 2:
        return results
    mean = mean[len(single) :]
    error = error[len(single) :]
    padded = np.full((3, heads), np.nan)
    padded[:, : len(order)] = [order, mean, error]
    within = mean + 2 * error <= tolerance
    count = int(np.logical_and.accumulate(within).sum())
    return results | {
        "alike": ("of_pair", list(pair)),
        "cheapest_error": padded[1, 0],
        "cheapest_error_mcse": padded[2, 0],
        "removal_order": ("removed", padded[0]),
        "removal_error": ("removed", padded[1]),
        "removal_error_mcse": ("removed", padded[2]),
        "redundant_heads": count,
        "redundant_share": count / heads,
    }
