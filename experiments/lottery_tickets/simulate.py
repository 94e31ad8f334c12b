"""Random sources pruned by exact subset sums, and the attention that comes of it.

Entries are missed as the solver finds; nothing is known here of laws of subset sums.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sims.montecarlo import Draw, HostBatches
from sims.study.experiment import Experiment
from sims.study.stacking import Scalar
from sims.study.units import SampledUnit

from .pruning import attention, closest_subset

Numbers = dict[str, np.ndarray]
Settings = Mapping[str, Any]
NAMES = ("part", "d", "heads", "target", "items", "entry", "constant", "tolerance", "blocks")


CURVES = ("median_output", "median_entry", "mean_output")


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """Errors by width, failure probabilities, many entries, widths, lengths, scales, blocks."""
    settings, sampled = experiment.settings, {}
    own = settings["curves"]
    for d, sources in zip(own["d"], own["sources"], strict=True):
        for target in own["targets"] if d == own["block_d"] else ["within"]:
            for blocks in own["blocks"] if target == "within" and d == own["block_d"] else [1]:
                sampled[f"curve d={d} {target} B={blocks}"] = unit(
                    curve,
                    "curve",
                    (own, d, target, blocks),
                    dict.fromkeys(CURVES, "per_entry"),
                    {"per_entry": own["items"]},
                    sources,
                    d=d,
                    target=target,
                    blocks=blocks,
                )
    own = settings["law"]
    for items in own["items"]:
        for entry in own["entries"]:
            sampled[f"law n'={items} w={entry:g}"] = unit(
                missed,
                "law",
                (own, items, entry),
                {"missed": "multiple"},
                {"multiple": own["multiples"]},
                own["draws"],
                items=items,
                entry=entry,
            )
    own = settings["many"]
    sampled["many"] = unit(
        many,
        "many",
        own,
        {"log_error": ("searched", "count")},
        {"searched": own["items"], "count": own["counts"]},
        own["sources"],
    )
    own = settings["widths"]
    for d, heads in own["shapes"]:
        for tolerance in own["tolerances"]:
            for name, constant in own["constants"].items():
                sampled[f"width d={d} H={heads} ε={tolerance:g} C={name}"] = unit(
                    failed,
                    "width",
                    (own, d, heads, tolerance, constant),
                    {},
                    {},
                    own["sources"],
                    d=d,
                    heads=heads,
                    tolerance=tolerance,
                    constant=name,
                )
    own = settings["lengths"]
    dims = dict.fromkeys(("error_by_length", "over_bound"), "length")
    sampled["lengths"] = unit(
        lengths, "lengths", own, dims, {"length": own["lengths"]}, own["sources"]
    )
    own = settings["scales"]
    for width in own["widths"]:
        for entry in own["entries"]:
            sampled[f"scale n_K={width} w={entry:g}"] = unit(
                scaled,
                "scale",
                (own, width, entry),
                dict.fromkeys(("error", "scale"), "candidate"),
                {},
                own["draws"],
                items=width // own["d"],
                entry=entry,
            )
    return sampled


def unit(
    function: Any,
    part: str,
    constants: Any,
    dims: Mapping[str, Any],
    coords: Mapping[str, Any],
    replicates: int,
    **at: Scalar,
) -> SampledUnit:
    """A point whose batches a plain function makes; draws are shared by all points."""
    sampler = HostBatches(partial(drawn, function), constants=constants, dims=dims, coords=coords)
    return SampledUnit(sampler, dict.fromkeys(NAMES) | {"part": part} | at, replicates)


def drawn(function: Any, draw: Draw, replicates: int, shared: Any) -> Numbers:
    """One batch, from NumPy's generator."""
    return function(draw.rng(), replicates, shared)


def products(rng: np.random.Generator, entries: tuple[int, ...], items: int) -> np.ndarray:
    """Items (…, d, d', n') of all entries: v is an entry's own, u is shared down a column."""
    *lead, rows, columns = entries
    u = rng.uniform(-1, 1, (*lead, 1, columns, items))
    return np.asarray(rng.uniform(-1, 1, (*lead, rows, columns, items)) * u)


def closest(items: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The best subset sums of items (…, n'), of targets (…); only the masks are the solver's."""
    return np.asarray(np.where(closest_subset(items, target).chosen, items, 0.0).sum(-1))


def nearly_closest(items: np.ndarray, target: np.ndarray, most: int) -> np.ndarray:
    """Good subset sums of many items: the largest are taken greedily, the last searched exactly."""
    order = np.argsort(-np.abs(items), axis=-1)
    ranked = np.take_along_axis(items, order, -1)
    left = target.copy()
    for place in range(max(items.shape[-1] - most, 0)):
        item = ranked[..., place]
        left -= np.where(np.abs(left - item) < np.abs(left), item, 0.0)
    return np.asarray(target - left + closest(ranked[..., -most:], left))


def targets(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Merged matrices (…, 2, d, d) of a target, W_QK and W_VO, in one of four classes.

    ``edge``: rotations of norm 1, at the edge of the theorem's assumption, W_QK over √d;
    ``within``: products of two normal matrices, each scaled to a norm that is uniform on [0, 1];
    ``products``: entries that are sums of 8 products of two U[−1, 1]; ``tiny``: a hundredth of the
    first.
    """
    d = shape[-1]
    if name == "products":
        return np.asarray((rng.uniform(-1, 1, (2, *shape, 8)).prod(0)).sum(-1))
    if name == "within":
        factors = rng.standard_normal((2, *shape))
        norms = np.linalg.norm(factors, 2, axis=(-2, -1), keepdims=True)
        factors *= rng.uniform(0, 1, norms.shape) / norms
        merged = factors[0] @ factors[1]
    else:
        merged = np.linalg.qr(rng.standard_normal(shape))[0]
    merged[..., 0, :, :] /= np.sqrt(d)
    return np.asarray(merged / 100 if name == "tiny" else merged)


def curve(
    rng: np.random.Generator, sources: int, shared: tuple[Settings, int, str, int]
) -> Numbers:
    """Errors by items an entry, of nested sources: the median entry's and the output's.

    The output's is the largest over drawn inputs of a head, or of B blocks ``x + head(x)`` in
    series, each pruned from a source of its own. Returned: the batch's median and mean.
    """
    own, d, target, blocks = shared
    goal = targets(rng, target, (sources, blocks, 2, d, d))
    pool = products(rng, goal.shape, max(own["items"]))
    tokens = rng.standard_normal((sources, own["inputs"], own["length"], d))
    tokens /= np.linalg.norm(tokens, axis=-1, keepdims=True)
    tokens *= np.sqrt(d) if own["bound"] else 1.0
    true, outputs, entries, means = passed(tokens, goal), [], [], []
    for items in own["items"]:
        some = slice(own["widest"] if items == max(own["items"]) else None)
        pruned = closest(pool[some, ..., :items], goal[some])
        gap = np.linalg.norm(passed(tokens[some], pruned) - true[some], axis=-1).max(axis=(1, 2))
        outputs.append(np.median(gap))
        means.append(gap.mean())
        entries.append(np.median(np.abs(pruned - goal[some])))
    return dict(zip(CURVES, map(np.array, (outputs, entries, means)), strict=True))


def passed(tokens: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Tokens (S, I, T, d) through heads of matrices (S, B, 2, d, d); more than one have a skip."""
    blocks = matrices.shape[1]
    for block in range(blocks):
        head = attention(tokens, *(matrices[:, block, part, None] for part in (0, 1)))
        tokens = head if blocks == 1 else tokens + head
    return tokens


def missed(rng: np.random.Generator, draws: int, shared: tuple[Settings, int, float]) -> Numbers:
    """Share of draws in which no subset sum is within ε of an entry, ε multiples of 2^{−n'}."""
    own, items, entry = shared
    error = closest_subset(
        products(rng, (draws, 1, 1), items)[:, 0, 0], np.full(draws, entry)
    ).error
    return {
        "missed": np.array(
            [(error > eps).mean() for eps in np.array(own["multiples"]) * 2.0**-items]
        )
    }


def many(rng: np.random.Generator, sources: int, own: Settings) -> Numbers:
    """Mean log of the largest error of N entries, by items and N, of d × d matrices; nested."""
    count = max(own["counts"])
    d = own["d"]
    pool = products(rng, (sources, -(-count // d**2), d, d), max(own["items"]))
    goal = rng.uniform(-own["reach"], own["reach"], pool.shape[:-1])
    logs = []
    for items in own["items"]:
        error = closest_subset(pool[..., :items], goal).error.reshape(sources, -1)[:, :count]
        logs.append([np.log(error.reshape(sources, -1, n).max(-1)).mean() for n in own["counts"]])
    return {"log_error": np.array(logs)}


def failed(
    rng: np.random.Generator, sources: int, shared: tuple[Settings, int, int, float, float]
) -> Numbers:
    """Theorem 3's widths: log of the (1 − ε)-quantile of the H heads' error over ε, share missed.

    The error is the largest over drawn inputs of norm α = √d, with the printed widths for W_QK and
    for W_VO. The search is exact over ``most`` items alone (:func:`nearly_closest`), so that what
    is found could only be better.
    """
    own, d, heads, tolerance, constant = shared
    goal = targets(rng, "edge", (sources, heads, 2, d, d))
    pruned = []
    for part, size in enumerate((8 * heads * d**3, 2 * heads * d**2)):
        items = int(np.ceil(constant * np.log(size / tolerance)))
        pool = products(rng, (*goal.shape[:2], d, d), items)
        pruned.append(nearly_closest(pool, goal[:, :, part], own["most"]))
    found = np.stack(pruned, axis=2)
    tokens = rng.standard_normal((sources, own["inputs"], own["length"], d))
    tokens *= np.sqrt(d) / np.linalg.norm(tokens, axis=-1, keepdims=True)
    change = [
        passed(tokens, found[:, h : h + 1]) - passed(tokens, goal[:, h : h + 1])
        for h in range(heads)
    ]
    error = np.linalg.norm(np.sum(change, axis=0), axis=-1).max(axis=(1, 2))
    # Of m errors the k-th is at the share k/(m + 1) of their law.
    quantile = np.quantile(error, 1 - tolerance, method="weibull")
    return {"log_excess": np.log(quantile / tolerance), "failed": (error > tolerance).mean()}


def lengths(rng: np.random.Generator, sources: int, own: Settings) -> Numbers:
    """Error of one query's mean of tokens by length, and its largest ratio to the bound by tanh."""
    d, bound = own["d"], np.sqrt(own["d"])
    goal = targets(rng, "edge", (sources, 1, 2, d, d))[:, 0, 0]
    change = closest(products(rng, goal.shape, own["items"]), goal) - goal
    tokens = rng.standard_normal((sources, max(own["lengths"]), d))
    tokens *= bound / np.linalg.norm(tokens, axis=-1, keepdims=True)
    errors, ratios = [], []
    for length in own["lengths"]:
        x = tokens[:, :length]
        logits = x[:, :1] @ goal @ x.swapaxes(1, 2)
        moved = x[:, :1] @ change @ x.swapaxes(1, 2)
        first, second = (np.exp(z - z.max(-1, keepdims=True)) for z in (logits, logits + moved))
        weights = second / second.sum(-1, keepdims=True) - first / first.sum(-1, keepdims=True)
        gap = np.linalg.norm(weights @ x, axis=-1)[:, 0]
        largest = np.abs(moved).max(-1)[:, 0]
        errors.append(gap.mean())
        ratios.append((gap / (2 * bound * np.tanh(largest / 2))).max())
    return {"error_by_length": np.array(errors), "over_bound": np.array(ratios)}


def scaled(rng: np.random.Generator, draws: int, shared: tuple[Settings, int, float]) -> Numbers:
    """Median error of an entry by weight scale; products of weights over √n_K are the items.

    The first scales are those on trial, n_K^{1/4} and √(6|w|√d); the others are their rivals.
    """
    own, width, entry = shared
    pool = products(rng, (draws, 1, 1), width // own["d"])[:, 0, 0]
    goal = np.full(draws, entry)
    tried = np.array([width**0.25, np.sqrt(6 * abs(entry) * own["d"] ** 0.5), *own["rivals"]])
    errors = [closest_subset(pool * s**2 / np.sqrt(width), goal).error for s in tried]
    return {"error": np.median(errors, axis=1), "scale": tried}
