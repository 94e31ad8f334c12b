"""Hierarchical scores on drawn tokens: identities, counts, searches, truncation, and mixtures."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from sims.attention import hierarchy
from sims.attention.attention import softmax
from sims.montecarlo import Draw, HostBatches, HostReplicates
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .simulate_ranks import narrowed, semidefinite
from .simulate_searches import EPS, SEARCHES, copies, drawn, multiplications, rank

Settings = Mapping[str, Any]
ARMS = ("scores", "outputs", "single")
"""Levels mixed in scores, in outputs, and one bandwidth with ``h̄² = Σλ_l h_l²``."""
COORDINATES = ("part", "tokens", "width", "head_width", "levels", "ratio", "spectrum", "mixture")


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """Every part at its sizes; draws are named by seed, batch and replicate alone."""
    settings = experiment.settings
    sampled: dict[str, SampledUnit] = {}
    for tokens in settings["tokens"]:
        for width in settings["width"]:
            for levels in settings["levels"]:
                sampled[f"T={tokens} d={width} L={levels}"] = replicates(
                    partial(checks, tokens, width, levels),
                    "checks",
                    tokens=tokens,
                    width=width,
                    levels=levels,
                )
    for tokens in settings["cost"]["tokens"]:
        for levels in settings["cost"]["levels"]:
            for ratio in settings["cost"]["ratio"]:
                sampled[f"cost T={tokens} L={levels} T/d={ratio}"] = batches(
                    partial(costs, tokens, int(tokens / ratio), levels),
                    "cost",
                    tokens=tokens,
                    levels=levels,
                    ratio=ratio,
                )
    for width, head_width in settings["semidefinite"]["sizes"]:
        sampled[f"semidefinite d={width} d_k={head_width}"] = batches(
            partial(semidefinite, width, head_width, settings["semidefinite"]),
            "semidefinite",
            width=width,
            head_width=head_width,
        )
    for kind, function in SEARCHES.items():
        for tokens, width, levels in settings["search"][kind]:
            sampled[f"{kind} T={tokens} d={width} L={levels}"] = batches(
                partial(function, tokens, width, levels, settings["search"]["draws"]),
                kind,
                dims=dict.fromkeys(["violation", *["full rank"] * ("needless" in kind)], ("draw",)),
                tokens=tokens,
                width=width,
                levels=levels,
            )
    truncation = settings["truncation"]
    kept = np.arange(1, truncation["kept"] + 1)
    for name, spectrum in truncation["spectra"].items():
        sampled[f"truncation, {name}"] = batches(
            partial(truncated, truncation, spectrum),
            "truncation",
            dims=dict.fromkeys(("error", "identity", "bound"), ("kept",)),
            coords={"kept": kept},
            spectrum=name,
        )
    for order in settings["blocks"]["order"]:
        sampled[f"block, order {order}"] = batches(
            partial(blocks, settings["blocks"], order),
            "blocks",
            dims={"remainder": ("scale",)},
            coords={"scale": settings["blocks"]["scale"]},
            levels=order,
        )
    for kept in settings["ranks"]["kept"]:
        sampled[f"ranks, d_k={kept}"] = batches(
            partial(narrowed, settings["ranks"], kept),
            "ranks",
            dims=dict.fromkeys(("excess", "least", "gain"), ("draw",)),
            head_width=kept,
        )
    for name, taps in settings["convolution"]["taps"].items():
        sampled[f"convolution, {name}"] = replicates(
            partial(convolution, settings["convolution"], taps), "convolution", spectrum=name
        )
    sampled["convolution, every input"] = replicates(
        partial(small_inputs, settings["convolution"]), "small inputs"
    )
    for name, regime in settings["mixture"]["regimes"].items():
        own = settings["mixture"] | regime
        sampled[f"mixture, {name}"] = batches(
            partial(mixtures, own),
            "mixture",
            dims=dict.fromkeys(("squared_bias", "variance", "mse"), ("arm",))
            | {"correlation": ("pair",)},
            coords={"arm": list(ARMS)},
            mixture=name,
        )
    for name in settings["mixture"]["drawn"]["regimes"]:
        own = settings["mixture"] | settings["mixture"]["regimes"][name]
        sampled[f"drawn mixture, {name}"] = batches(
            partial(drawn_mixtures, own),
            "drawn mixture",
            dims={"mse": ("arm",)},
            coords={"arm": list(ARMS)},
            mixture=name,
        )
    return sampled


def batches(
    batch: Callable[..., Any], part: str, dims: Any = None, coords: Any = None, **at: Any
) -> SampledUnit:
    """A unit of whole batches."""
    sampler = HostBatches(batch, dims=dims or {}, coords=coords or {})
    return SampledUnit(sampler, dict.fromkeys(COORDINATES) | {"part": part} | at)


def replicates(replicate: Callable[..., Any], part: str, **at: Any) -> SampledUnit:
    """A unit of single replicates, all of them kept."""
    sampler = HostReplicates(replicate, reduce="stack")
    return SampledUnit(sampler, dict.fromkeys(COORDINATES) | {"part": part} | at)


def checks(tokens: int, width: int, levels: int, draw: Draw, _: None, __: None) -> dict[str, Any]:
    """One draw's gaps in units of rounding, and dimensions counted."""
    rng = draw.rng()
    x, taps, pairs, weights = drawn(rng, tokens, width, levels)
    z = copies(x, taps, levels)
    parts = hierarchy.level_scores(hierarchy.levels(x, taps, levels), pairs, tokens)
    scores = hierarchy.mixed(parts, weights)
    full = [
        w * part @ (q @ k.T) @ part.T for w, part, (q, k) in zip(weights, z, pairs, strict=True)
    ]
    size = sum(np.abs(part).max() for part in full)
    # Squares of positive semidefinite pairs: W_K = W_Q at every level.
    squares = [(q, q) for q, _ in pairs]
    own = hierarchy.level_scores(hierarchy.levels(x, taps, levels), squares, tokens)
    definite = hierarchy.mixed(own, weights)
    definite = definite / np.abs(definite).max()
    raised = np.exp(definite)
    chain = raised / raised.sum(1, keepdims=True)
    spectrum = np.linalg.eigvals(chain)
    symmetric, skew = 0.5 * (scores + scores.T), 0.5 * (scores - scores.T)
    basis = np.array([np.outer(a, b).ravel() for part in z for a in part.T for b in part.T])
    square = basis.reshape(-1, tokens, tokens)
    flipped = np.swapaxes(square, 1, 2)
    attention, tame = softmax(scores / size), skew / size
    i, j, k = rng.choice(tokens, size=3, replace=False) if tokens > 2 else (0, 1, 0)
    turn = np.log(attention)
    cycle = (turn[i, j] + turn[j, k] + turn[k, i]) - (turn[i, k] + turn[k, j] + turn[j, i])
    stationary = softmax(symmetric / size)
    heft = np.exp(symmetric / size).sum(1)
    flow = heft[:, None] * stationary
    value = rng.normal(size=(width, width))
    moved = x.copy()
    place = int(rng.integers(tokens))
    moved[place] += 10.0
    out, changed = (hierarchy.attend(y, taps, pairs, weights, value) for y in (x, moved))
    single = hierarchy.attend(
        x,
        taps,
        [(pairs[0][0] / weights[0], pairs[0][1]), *[(0 * q, k) for q, k in pairs[1:]]],
        weights,
        value,
    )
    plain = hierarchy.causal_softmax(x @ pairs[0][0] @ pairs[0][1].T @ x.T) @ x @ value
    return {
        "scores": np.abs(scores - sum(full)).max() / size / EPS,
        "split": np.abs(np.sum(symmetric * skew)) / np.sum(scores**2) / EPS,
        "definite": max(-np.linalg.eigvalsh(definite)[0], 0.0) / EPS / tokens,
        "schur": max(-np.linalg.eigvalsh(raised)[0], 0.0) / EPS / tokens**2,
        "chain": max(-spectrum.real.min(), np.abs(spectrum.imag).max()) / EPS**0.5,
        "pairs": rank(basis),
        "symmetric pairs": rank((square + flipped).reshape(len(basis), -1)),
        "antisymmetric pairs": rank((square - flipped).reshape(len(basis), -1)),
        "columns": rank(np.concatenate(z, axis=1)),
        "cycle": np.abs(cycle - 2 * (tame[i, j] + tame[j, k] + tame[k, i])) / EPS,
        "reversible": np.abs(flow - flow.T).max() / flow.max() / EPS,
        "symmetric attention": np.abs(stationary - stationary.T).max(),
        "causal": np.abs((changed - out)[:place]).max(initial=0.0),
        "containment": np.abs(single - plain).max()
        / np.abs(plain).max()
        / EPS
        / (1 + np.abs(x @ pairs[0][0] @ pairs[0][1].T @ x.T).max()),
    }


def costs(tokens: int, width: int, levels: int, _: Draw, __: int, ___: None) -> dict[str, Any]:
    """Multiply–adds of scores, and of a layer with projections, over those of one level."""
    score, layer = counted(tokens, width, levels)
    return {"score_cost": score, "layer_cost": layer}


@cache
def counted(tokens: int, width: int, levels: int) -> tuple[float, float]:
    """Those two ratios; what is drawn changes no count."""
    x, taps, pairs, weights = drawn(np.random.default_rng(0), tokens, width, levels)
    value, stacked = np.eye(width), np.array(pairs)

    def scores(x: Any, stacked: Any) -> Any:
        coarse = hierarchy.levels(x, taps, len(stacked))
        parts = hierarchy.level_scores(coarse, list(stacked), tokens)
        return hierarchy.mixed(parts, weights[: len(stacked)])

    def layer(x: Any, stacked: Any, value: Any) -> Any:
        own = weights[: len(stacked)]
        return hierarchy.attend(x, taps, list(stacked), own, value) @ value

    products = [multiplications(scores, x, part) for part in (stacked, stacked[:1])]
    projected = sum(2 * len(part) * width**2 for part in hierarchy.levels(x, taps, levels))
    whole = [multiplications(layer, x, part, value) for part in (stacked, stacked[:1])]
    return (products[0] - projected) / (products[1] - 2 * tokens * width**2), whole[0] / whole[1]


def truncated(
    settings: Settings, spectrum: Sequence[float], draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Error of the first L levels with renormalised weights, by L, over the size of the target.

    ``identity``: the gap to τ_L times the distance of the tail's mean from the head's, in units of
    rounding; ``bound``: attention's error in the 1-norm over the largest error of scores.
    """
    rng, tokens = draw.rng(), settings["tokens"]
    weights = np.array(spectrum, float) / np.sum(spectrum)
    out: dict[str, list[np.ndarray]] = {"error": [], "identity": [], "bound": []}
    for _one in range(replicates):
        x, taps, pairs, _any = drawn(rng, tokens, settings["width"], len(weights))
        coarse = hierarchy.levels(x, taps / np.linalg.norm(taps), len(weights))
        parts = np.array(hierarchy.level_scores(coarse, pairs, tokens)) / settings["width"] ** 0.5
        target = np.tensordot(weights, parts, 1)
        rows: dict[str, list[float]] = {k: [] for k in out}
        for kept in range(1, settings["kept"] + 1):
            head, tail = weights[:kept].sum(), weights[kept:].sum()
            # Where the target has nothing in the levels kept, all of them count alike.
            own = weights[:kept] / head if head > 0 else np.full(kept, 1 / kept)
            model = np.tensordot(own, parts[:kept], 1)
            beyond = np.tensordot(weights[kept:] / max(tail, 1e-300), parts[kept:], 1)
            gap, size = target - model, np.linalg.norm(target)
            rows["error"].append(float(np.linalg.norm(gap) / size))
            split = tail * np.linalg.norm(beyond - model)
            rows["identity"].append(float(abs(np.linalg.norm(gap) - split) / size / EPS))
            both = [hierarchy.causal_softmax(s) for s in (target, model)]
            rows["bound"].append(
                float(np.max(np.abs(both[0] - both[1]).sum(1) - np.abs(gap).max(1)))
            )
        for name, values in rows.items():
            out[name].append(np.array(values))
    return {
        "error": np.mean(out["error"], axis=0),
        "identity": np.max(out["identity"], axis=0),
        "bound": np.max(out["bound"], axis=0),
    }


def blocks(
    settings: Settings, order: int, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Mean remainder of the block's log mean of e^{q·k} after its cumulants up to an order, by ‖q‖.

    Keys of a block have exponential coordinates, so that no cumulant vanishes.
    """
    rng, m, d = draw.rng(), settings["keys"], settings["width"]
    count = settings["draws"] * replicates
    keys = rng.exponential(size=(count, m, d))
    query = rng.normal(size=(count, d))
    query /= np.linalg.norm(query, axis=1, keepdims=True)
    unit_scores = np.einsum("rmd,rd->rm", keys, query)
    means = unit_scores.mean(1)
    gaps = unit_scores - means[:, None]
    moments = [(gaps**power).mean(1) for power in (2, 3, 4)]
    cumulants = [means, moments[0] / 2, moments[1] / 6, (moments[2] - 3 * moments[0] ** 2) / 24]
    out = []
    for scale in settings["scale"]:
        exact = np.log1p(np.expm1(scale * gaps).mean(1)) + scale * means
        expansion = sum(c * scale ** (k + 1) for k, c in enumerate(cumulants[:order]))
        out.append(np.abs(exact - expansion).mean())
    return {"remainder": np.array(out)}


def convolution(
    settings: Settings, taps: Sequence[float], draw: Draw, _: None, __: None
) -> dict[str, float]:
    """Relative misfit of ``wΣ_j a_j x_j`` to ``Σ_k c_k x_{T−1−k}``: best a ≥ 0, Σa = 1, any w.

    wa is any vector of one sign: two problems of non-negative least squares.
    """
    from scipy.optimize import nnls

    tokens = settings["tokens"]
    x = draw.rng().normal(size=(tokens, settings["width"]))
    row = np.zeros(tokens)
    row[tokens - len(taps) :] = taps[::-1]
    wanted = row @ x
    best = min(nnls(x.T, sign * wanted)[1] for sign in (1, -1))
    return {"misfit": best / float(np.linalg.norm(wanted))}


def small_inputs(settings: Settings, draw: Draw, _: None, __: None) -> dict[str, float]:
    """The misfit of hierarchical attention, of any one scalar W, to taps (½, ½) on small inputs.

    Scores of tokens of size 10⁻⁶ are nearly 0 whatever the weights, and attention is uniform.
    """
    tokens = settings["tokens"]
    x, taps, pairs, weights = drawn(draw.rng(), tokens, settings["width"], 2)
    out = hierarchy.attend(1e-6 * x, taps, pairs, weights, np.eye(settings["width"]))[-1]
    wanted = 1e-6 * 0.5 * (x[-1] + x[-2])
    best = (out @ wanted) / (out @ out)
    return {"misfit": float(np.linalg.norm(best * out - wanted) / np.linalg.norm(wanted))}


def mixtures(settings: Settings, draw: Draw, replicates: int, _: None) -> dict[str, np.ndarray]:
    """Squared bias, variance and error of the arms at the file's queries.

    Also noise correlations of pairs of levels, given the keys.
    """
    rng, noise, count = draw.rng(), settings["noise_sd"], settings["draws"] * replicates
    keys = keys_of(settings, rng, count)
    labels = np.cos(settings["frequency"] * keys[..., 0])
    labels += noise * rng.normal(size=labels.shape)
    at = np.array(settings["queries"], float)[:, : keys.shape[-1]]
    truth = np.cos(settings["frequency"] * at[:, 0])
    levels, arms = attended(settings, keys, np.broadcast_to(at, (count, *at.shape)))
    out: dict[str, list[float]] = {"squared_bias": [], "variance": [], "mse": []}
    for attention in arms:
        found = np.einsum("rqn,rn->rq", attention, labels)
        variance = found.var(0, ddof=1)
        out["squared_bias"].append(float(np.mean((found.mean(0) - truth) ** 2 - variance / count)))
        out["variance"].append(float(variance.mean()))
        out["mse"].append(float(np.mean((found - truth) ** 2)))
    product = [[(a * b).sum(-1).mean() for b in levels] for a in levels]
    pairs = [
        product[i][j] / (product[i][i] * product[j][j]) ** 0.5
        for i, j in [*pairwise(range(len(levels))), (0, len(levels) - 1)]
    ]
    return {name: np.array(values) for name, values in (out | {"correlation": pairs}).items()}


def drawn_mixtures(
    settings: Settings, draw: Draw, replicates: int, _: None
) -> dict[str, np.ndarray]:
    """Mean squared errors of the arms, a query and a phase of the target to every set of keys."""
    rng, count, own = draw.rng(), settings["draws"] * replicates, settings["drawn"]
    keys = keys_of(settings, rng, count)
    at = own["scale"] * rng.normal(size=(count, 1, keys.shape[-1]))
    phase = rng.uniform(0, 2 * np.pi, (count, 1))
    labels = np.cos(settings["frequency"] * keys[..., 0] + phase)
    labels += settings["noise_sd"] * rng.normal(size=labels.shape)
    truth = np.cos(settings["frequency"] * at[..., 0] + phase)
    _levels, arms = attended(settings, keys, at)
    errors = [np.einsum("rqn,rn->rq", attention, labels) - truth for attention in arms]
    return {"mse": np.array([np.mean(error**2) for error in errors])}


def keys_of(settings: Settings, rng: np.random.Generator, count: int) -> np.ndarray:
    """Keys of variance I, (count, n, d_k)."""
    size = (count, settings["n"], settings["width"])
    if settings["keys"] == "gaussian":
        return rng.normal(size=size)
    return rng.uniform(-(3**0.5), 3**0.5, size=size)


def attended(
    settings: Settings, keys: np.ndarray, at: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Attention of every level, through Gaussian kernels of bandwidths h_l, and of every arm.

    Each is (draw, query, key); ``at`` are the queries (draw, query, d_k).
    """
    squares = ((at[:, :, None] - keys[:, None]) ** 2).sum(-1)
    weights, h = (np.array(settings[name], float) for name in ("weights", "bandwidths"))
    parts = [-squares / (2 * own**2) for own in h]
    levels = [softmax(part) for part in parts]
    arms = [
        softmax(hierarchy.mixed(parts, weights)),
        hierarchy.mixed(levels, weights),
        softmax(-squares / (2 * weights @ h**2)),
    ]
    return levels, arms
