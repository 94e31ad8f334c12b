"""Stacks of layers with hidden scores, with paired draws: all arms see the same tokens and weights.

The arms of a stack are its starts and memories α′; α′ = 0 is plain attention.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sims.attention import hidden
from sims.montecarlo import Draw, HostBatches
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .second_layer import STARTS, drawn_heads, library, second_layer

EPS = 2.0**-52
FLOOR = -345.0
"""log ρ below this, ρ = 10⁻¹⁵⁰, counts as this: squares of smaller numbers underflow."""
LAYERS = ("layer", "start", "memory")
Settings = Mapping[str, Any]


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """Stacks by regime, simplex, checks of identities, searches, and heads of a second layer."""
    settings = experiment.settings
    memory = np.array(settings["memory"], float)
    coords = {"start": list(STARTS), "memory": memory}
    sampled: dict[str, SampledUnit] = {}
    for regime in settings["stacks"]:
        own = settings["stack"] | regime
        sampled[regime["name"]] = unit(
            partial(stack, own, memory),
            regime["part"],
            dims=dict.fromkeys(("log_residual", "log_odds", "product", "square"), LAYERS),
            coords=coords,
            weights=own["weights"],
            matrix=own["matrix"],
            score_scale=own["score_scale"],
        )
    for n in settings["simplex"]["n"]:
        for scale in settings["simplex"]["score_scale"]:
            own = settings["simplex"] | {"n": n, "score_scale": scale}
            sampled[f"simplex n={n} β={scale}"] = unit(
                partial(simplex, own, memory),
                "simplex",
                dims={"log_size": LAYERS},
                coords=coords,
                n=n,
                score_scale=scale,
            )
    for n in settings["search"]["simplex_n"]:
        sampled[f"monotone n={n}"] = unit(
            partial(monotone, n, settings["search"]),
            "monotone",
            dims={"shortfall": ("draw", "start")},
            coords={"start": list(STARTS)},
            n=n,
        )
    for n, d in settings["search"]["energy_sizes"]:
        sampled[f"energy n={n} d={d}"] = unit(
            partial(energies, n, d, settings["search"]),
            "energy",
            dims={"rise": ("draw", "rule")},
            coords={"rule": ["new", "old", "values"]},
            n=n,
            d=d,
        )
    sampled["identities"] = unit(partial(identities, settings["identities"]), "identities")
    for tokens in ("moving", "fixed"):
        sampled[f"rank, {tokens} tokens"] = unit(
            partial(ranks, settings["rank"], tokens == "fixed"),
            "rank",
            dims={"rank": ("draw", "start", "layer"), "gap": ("draw", "start", "layer")},
            coords={"start": list(STARTS)},
            tokens=tokens,
        )
    for correlation in settings["temperature"]["correlation"]:
        sampled[f"scores r={correlation}"] = unit(
            partial(temperatures, settings["temperature"], memory, correlation),
            "temperature",
            dims=dict.fromkeys(("score_variance", "keys"), LAYERS),
            coords=coords,
            correlation=correlation,
        )
    second = settings["second_layer"]
    for view in second["views"]:
        for kernel in second["bandwidth"]:
            sampled[f"second layer, {view['name']}, {kernel}"] = unit(
                partial(second_layer, second, view, kernel),
                "second layer",
                dims=dict.fromkeys(("squared_bias", "variance", "mse"), ("start", "memory")),
                coords={"start": list(STARTS), "memory": second["memory"]},
                view=view["name"],
                kernel=kernel,
            )
            sampled[f"drawn heads, {view['name']}, {kernel}"] = unit(
                partial(drawn_heads, second, view, kernel),
                "drawn heads",
                dims=dict.fromkeys(("variance", "mse"), ("start", "memory")),
                coords={"start": list(STARTS), "memory": second["memory"]},
                view=view["name"],
                kernel=kernel,
            )
    return sampled


COORDINATES = (
    "part",
    "weights",
    "matrix",
    "score_scale",
    "n",
    "d",
    "tokens",
    "correlation",
    "view",
    "kernel",
)


def unit(batch: Any, part: str, dims: Any = None, coords: Any = None, **at: Any) -> SampledUnit:
    """Batches of a function, under the coordinates that the part has."""
    coordinates = dict.fromkeys(COORDINATES) | {"part": part} | at
    return SampledUnit(HostBatches(batch, dims=dims or {}, coords=coords or {}), coordinates)


def drawn_weights(
    settings: Settings, rng: np.random.Generator, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """M and W of one layer, (R, 1, 1, d, d).

    Off the diagonal scores of tokens of norm √d have standard deviation β, whether M is Gaussian or
    the positive semidefinite GGᵀ; W has entries N(0, 1/d).
    """
    d, beta = settings["d"], settings["score_scale"]
    g = rng.normal(size=(draws, 1, 1, d, d))
    if settings["matrix"] == "gaussian":
        bilinear = beta * g / d
    else:
        bilinear = beta * g @ np.swapaxes(g, -1, -2) / (d * np.sqrt(2 * d))
    return bilinear, rng.normal(size=g.shape) / np.sqrt(d)


def stack(
    settings: Settings, memory: np.ndarray, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Relative residual and log-odds after every layer, means over draws, (layer, start, memory).

    ``product`` and ``square`` are the mean products of new scores with hidden ones, and with
    themselves, of what depends on the row: their ratio is the slope of h_l on S_l.
    """
    rng, n, d = draw.rng(), settings["n"], settings["d"]
    shape = (replicates, len(STARTS), len(memory))
    tokens = rng.normal(size=(replicates, 1, 1, n, d))
    stream = hidden.split(np.broadcast_to(tokens, (*shape, n, d)))
    first = np.stack([np.broadcast_to(hidden.first_share(memory, s), memory.shape) for s in STARTS])
    measures: dict[str, list[np.ndarray]] = {
        k: [] for k in ("residual", "odds", "product", "square")
    }
    for layer in range(settings["layers"]):
        if layer == 0 or settings["weights"] == "independent":
            bilinear, value = drawn_weights(settings, rng, replicates)
        before = stream
        stream = hidden.split_layer(
            stream, bilinear, value, memory, settings["skip"], first if layer == 0 else 1 - memory
        )
        new = before.residual @ bilinear @ np.swapaxes(before.residual, -1, -2)
        measures["product"].append((new * stream.rows).mean((0, -1, -2)))
        measures["square"].append((new * new).mean((0, -1, -2)))
        if settings["norm"]:
            stream = hidden.split_rms_norm(stream)
        measures["residual"].append(np.maximum(stream.log_residual, FLOOR).mean(0))
        measures["odds"].append(np.minimum(stream.log_odds, -2 * FLOOR).mean(0))
    return {
        "log_residual": np.array(measures["residual"]),
        "log_odds": np.array(measures["odds"]),
        "product": np.array(measures["product"]),
        "square": np.array(measures["square"]),
    }


def simplex(
    settings: Settings, memory: np.ndarray, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """log a_l of simplex tokens in random position, through the layers, (layer, start, memory)."""
    rng, n = draw.rng(), settings["n"]
    frame = np.linalg.qr(rng.normal(size=(n + 1, n + 1)))[0]
    tokens = settings["mean"] * frame[n] + settings["size"] * (np.eye(n) - 1 / n) @ frame[:n]
    shape = (len(STARTS), len(memory))
    stream = hidden.split(np.broadcast_to(tokens, (*shape, n, n + 1)))
    first = np.stack([np.broadcast_to(hidden.first_share(memory, s), memory.shape) for s in STARTS])
    eye, sizes = np.eye(n + 1), []
    for layer in range(settings["layers"]):
        stream = hidden.split_layer(
            stream,
            settings["score_scale"] * eye,
            settings["value_scale"] * eye,
            memory,
            settings["skip"],
            first if layer == 0 else 1 - memory,
        )
        ratio = 0.5 * (2 * np.log(settings["mean"]) + np.log(n) - stream.log_odds)
        length = np.log(np.linalg.norm(stream.mean, axis=-1) / settings["mean"])
        sizes.append(np.maximum(ratio + length - 0.5 * np.log(n - 1), FLOOR))
    return {"log_size": np.array(sizes)}


def identities(settings: Settings, draw: Draw, _: int, __: None) -> dict[str, Any]:
    """Largest gaps of one draw, in units of rounding.

    ``standard``: a stack without memory against one of library layers; ``first, zero`` and ``first,
    copy``: weights of the first layer with memory against plain ones; ``kernel``: the last layer's
    weights against softmax of one dot product of concatenated queries and keys; ``frozen``: hidden
    scores of equal layers against β_l S, with β_l from the first entry.
    """
    rng, layers, memory = draw.rng(), settings["layers"], settings["memory"]
    n, d, width = settings["n"], settings["d"], settings["head_width"]
    gaps: dict[str, list[float]] = {}

    def record(name: str, gap: np.ndarray, size: Any = 1.0) -> None:
        gaps.setdefault(name, []).append(float(np.max(np.abs(gap) / size) / EPS))

    query, key = rng.normal(size=(2, layers, d, width)) / d**0.5
    value = rng.normal(size=(layers, d, d)) / d**0.5
    tokens = rng.normal(size=(n, d))
    bilinear = query @ np.swapaxes(key, -1, -2) / width**0.5
    for start in ("zero", "copy"):
        shares = [hidden.first_share(0.0, start), *[1.0] * (layers - 1)]
        own, expected, state = tokens, tokens, np.zeros((n, n))
        for layer in range(layers):
            own, state = hidden.layer(
                own, state, bilinear[layer], value[layer], 0.0, settings["skip"], shares[layer]
            )
            attended = library(expected, query[layer], key[layer], value[layer])
            expected = settings["skip"] * expected + (1 - settings["skip"]) * attended
        record("standard", own - expected, np.abs(expected).max() * layers)
        queries, keys = tokens @ query, tokens @ key
        scores = queries @ np.swapaxes(keys, -1, -2) / width**0.5
        last = hidden.accumulate(scores, memory, start)
        size = 1 + np.abs(scores).max()
        record(f"first, {start}", hidden.softmax(last[0]) - hidden.softmax(scores[0]), size)
        wide = [hidden.concatenated(part, memory, start) for part in (queries, keys)]
        dot = wide[0] @ wide[1].T / width**0.5
        record("kernel", hidden.softmax(last[-1]) - hidden.softmax(dot), size)
        product = np.prod(
            [
                np.exp(w * s)
                for w, s in zip(hidden.layer_shares(layers, memory, start), scores, strict=True)
            ],
            axis=0,
        )
        product /= product.sum(-1, keepdims=True)
        record("kernel", hidden.softmax(last[-1]) - product, size)
        frozen = hidden.accumulate(np.stack([scores[0]] * layers), memory, start)
        ratios = frozen[:, 0, 0] / scores[0, 0, 0]
        record(f"frozen, {start}", frozen - ratios[:, None, None] * scores[0], size)
        gaps.setdefault(f"ratio, {start}", []).append(float(ratios[-1]))
    return {
        name: np.mean(values) if name.startswith("ratio") else np.max(values)
        for name, values in gaps.items()
    }


def ranks(
    settings: Settings, fixed: bool, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Numerical rank of hidden scores (draw, start, layer), and the gap that it rests on.

    Tokens are drawn anew in every layer, as they move in a stack without skip; or they are the same
    in all.
    """
    rng, layers, n = draw.rng(), settings["layers"], settings["n"]
    d, width = settings["d"], settings["head_width"]
    shape = (replicates, 1 if fixed else layers, n, d)
    tokens = np.broadcast_to(rng.normal(size=shape), (replicates, layers, n, d))
    query, key = rng.normal(size=(2, replicates, layers, d, width))
    scores = (tokens @ query) @ np.swapaxes(tokens @ key, -1, -2)
    found, gaps = [], []
    for start in ("zero", "copy"):
        h = hidden.accumulate(np.swapaxes(scores, 0, 1), settings["memory"], start)
        values = np.linalg.svd(h, compute_uv=False) + 1e-300
        kept = values > settings["tolerance"] * values[..., :1]
        dropped = np.where(kept, 0.0, values).max(-1)
        least = np.where(kept, values, np.inf).min(-1)
        found.append(kept.sum(-1))
        gaps.append(np.log10(least / np.maximum(dropped, EPS * values[..., 0])))
    order = (2, 0, 1)
    return {"rank": np.array(found, float).transpose(order), "gap": np.array(gaps).transpose(order)}


def temperatures(
    settings: Settings, memory: np.ndarray, correlation: float, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Variance of hidden scores over the keys of a row, and keys attended to, over n.

    Scores are normal, of variance 1, with correlation r^k at a lag of k layers.
    """
    rng, n, layers = draw.rng(), settings["n"], settings["layers"]
    noise = rng.normal(size=(layers, replicates * settings["rows"], n))
    scores = [noise[0]]
    for own in noise[1:]:
        scores.append(correlation * scores[-1] + (1 - correlation**2) ** 0.5 * own)
    out: dict[str, list[np.ndarray]] = {"score_variance": [], "keys": []}
    for start in ("zero", "copy"):
        for one in memory:
            h = hidden.accumulate(np.stack(scores), float(one), start)
            weights = hidden.softmax(h)
            out["score_variance"].append(h.var(-1, ddof=1).mean(-1))
            out["keys"].append((1 / (n * (weights**2).sum(-1))).mean(-1))
    shape = (2, len(memory), layers)
    return {k: np.array(v).reshape(shape).transpose(2, 0, 1) for k, v in out.items()}


def monotone(
    n: int, settings: Settings, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """By how much log a_l of simplex tokens is below that without memory, most over layers.

    Scale of scores, size, value scale in [0, 1], skip weight and memory are drawn; (draw, start).
    """
    rng, count, d = draw.rng(), settings["draws"] * replicates, n + 1
    beta, size = np.exp(rng.normal(size=(2, count)))
    value, skip, memory = rng.uniform(size=(3, count))
    frame = np.linalg.qr(rng.normal(size=(d, d)))[0]
    residual = size[:, None, None] * ((np.eye(n) - 1 / n) @ frame[:n])
    tokens = residual + frame[n]

    def sizes(memory: np.ndarray, start: hidden.Start) -> np.ndarray:
        stream, out = hidden.split(tokens), []
        eye = np.eye(d)
        for layer in range(settings["layers"]):
            share = hidden.first_share(memory, start) if layer == 0 else 1 - memory
            stream = hidden.split_layer(
                stream,
                beta[:, None, None] * eye,
                value[:, None, None] * eye,
                memory,
                skip,
                np.broadcast_to(share, memory.shape),
            )
            out.append(np.log(np.maximum(np.linalg.norm(stream.residual, axis=(-2, -1)), 1e-140)))
        return np.array(out)

    plain = sizes(np.zeros(count), "copy")
    lower = [(plain - sizes(memory, start)).max(0) for start in ("zero", "copy")]
    return {"shortfall": np.stack(lower, axis=-1)}


def energies(
    n: int, d: int, settings: Settings, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Largest rise of the energy in a step, over its size, (draw, rule).

    ``new``: the state's step uses the new hidden scores, as in the source's formulas, and values
    are keys; ``old``: it uses the old ones; ``values``: as new, with values drawn apart from keys.
    """
    rng, count = draw.rng(), settings["draws"] * replicates
    scale = np.exp(rng.normal(size=count))
    keys, values = scale[:, None, None] * rng.normal(size=(2, count, n, d))
    skip, memory = rng.uniform(size=(2, count))
    begin = 2 * rng.normal(size=(count, d)), 2 * rng.normal(size=(count, n))
    rises = []
    for own, old in ((keys, False), (keys, True), (values, False)):
        state, scores = begin
        most = np.full(count, -np.inf)
        before = hidden.energy(state, scores, keys)
        for _step in range(settings["steps"]):
            state, scores = hidden.retrieve(
                state, scores, keys, own, memory[:, None], skip[:, None], old
            )
            after = hidden.energy(state, scores, keys)
            size = 1 + (state**2).sum(-1) + np.abs(scores).max(-1) + (keys**2).sum((-2, -1))
            most = np.maximum(most, (after - before) / size)
            before = after
        rises.append(most)
    return {"rise": np.stack(rises, axis=-1)}
