"""Random caches, alternating least squares, calibration on drawn samples, random heads.

Errors are measured on the score matrices themselves. Nothing of the theory enters but the problems.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sims.attention.low_rank import LowRank, joint_svd, k_svd, kq_svd, stacked
from sims.montecarlo import Draw, HostBatches, HostReplicates
from sims.simulation.ensemble import EnsembleSampler
from sims.study.experiment import Experiment
from sims.study.stacking import Scalar
from sims.study.units import SampledUnit

from .bounds import masked_gain, random_bounds, row_bounds, spectral_search
from .drawn import blas, drawn_heads
from .problems import (
    Moments,
    cache_points,
    centred,
    ensembles,
    gaussian_triangle,
    moments,
    outputs,
    root_of,
    with_moment,
)

METHODS = ("KQ-SVD", "K-SVD", "Eigen")
NAMES = ("part", "decay", "angle", "n", "ratio", "mean", "regime", "rank", "length")
Numbers = dict[str, Any]


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """Caches, changed coordinates, calibration, random heads, bounds, ensembles."""
    settings, sampled = experiment.settings, {}
    seed = settings["seed"]
    own = settings["caches"]
    for name, (decay, angle) in cache_points(experiment).items():
        law = moments(own["d"], decay, angle, seed)
        dims = {"error": ("method", "rank"), "solver": ("rank",)}
        coords = {"method": list(METHODS), "rank": own["ranks"]}
        sampled[name] = unit(
            cached_scores,
            "cache",
            (law, own),
            dims,
            coords,
            own["replicates"],
            decay=decay,
            angle=str(angle),
        )
        if angle in own["neff"]["angles"]:
            dims = {"gain": ("method", "rank")}
            sampled[f"keys used {name}"] = unit(
                keys_used,
                "keys used",
                (law, own),
                dims,
                coords,
                own["neff"]["replicates"],
                decay=decay,
                angle=str(angle),
            )
    for q in settings["example"]:
        sampled[f"example q={q:g}"] = unit(example, "example", q, ratio=q)
    plain = settings["coordinates"]
    law = moments(own["d"], plain["decay"], "random", seed)
    sampled["coordinates"] = unit(coordinates, "coordinates", (law, plain))
    dims = dict.fromkeys(("to_keys", "to_queries"), ("balance",))
    sampled["balance"] = unit(
        balance, "balance", (law, plain), dims, {"balance": plain["balances"]}
    )
    sampled["groups"] = unit(groups, "groups", settings["groups"])
    calibration = settings["calibration"]
    for angle in calibration["angles"]:
        law = moments(calibration["d"], calibration["decay"], angle, seed)
        for n in calibration["sizes"]:
            for ratio in calibration["ratios"] if angle == "isotropic" else [1]:
                of = (law, calibration["rank"], n, round(n / ratio))
                at = {"part": "calibration", "angle": str(angle), "n": n, "ratio": float(ratio)}
                sampled[f"calibration {angle} n={n} ratio={ratio:g}"] = SampledUnit(
                    HostBatches(calibrated, constants=of),
                    dict.fromkeys(NAMES) | at,
                    calibration["replicates"],
                )
    for mean in settings["heads"]["means"]:
        sampled[f"random heads mean={mean:g}"] = unit(
            head, "head", (settings["heads"], mean), mean=float(mean), reduce="stack"
        )
    bounds = settings["bounds"]
    for length in bounds["lengths"]:
        sampled[f"spectral T={length}"] = unit(
            spectral_search,
            "spectral",
            length,
            length=length,
            replicates=bounds["restarts"],
            reduce=largest,
        )
    sampled["random spectral"] = unit(random_bounds, "random", bounds, reduce=largest)
    sampled["rows"] = unit(row_bounds, "rows", bounds, reduce=largest)
    for length in bounds["masked"]["lengths"]:
        sampled[f"masked T={length}"] = unit(
            masked_gain, "masked", (bounds["masked"], length), length=length
        )
    for name, (task, heads, n, queries) in ensembles(experiment).items():
        _, regime, rank = name.split()
        sampler = EnsembleSampler(
            task, heads, n, queries, control_variate=True, raw_labels=False, keep_queries=False
        )
        at = {"part": "heads", "regime": regime, "rank": int(rank[2:]), "n": n}
        sampled[name] = SampledUnit(
            sampler, dict.fromkeys(NAMES) | at, settings["ensemble"]["replicates"]
        )
    own = settings["ensemble"]
    for regime, sizes in own["regimes"].items():
        at = {"part": "drawn heads", "regime": regime, "n": sizes["n"]}
        sampled[f"drawn heads {regime}"] = SampledUnit(
            HostBatches(
                drawn_heads,
                constants=(own, sizes),
                dims=dict.fromkeys(("head", "pool"), ("kept",)),
                coords={"kept": own["ranks"]},
            ),
            dict.fromkeys(NAMES) | at,
            own["drawn_replicates"],
        )
    return sampled


def unit(
    function: Any,
    part: str,
    constants: Any,
    dims: Mapping[str, tuple[str, ...]] | None = None,
    coords: Mapping[str, Any] | None = None,
    replicates: int | None = None,
    reduce: Any = "mean",
    **at: Scalar,
) -> SampledUnit:
    """A point whose replicates a plain function makes."""
    sampler = HostReplicates(
        partial(drawn, function),
        constants=constants,
        dims=dims or {},
        coords=coords or {},
        reduce=reduce,
    )
    return SampledUnit(sampler, dict.fromkeys(NAMES) | {"part": part} | at, replicates)


def largest(kept: Mapping[str, np.ndarray]) -> Numbers:
    """The largest of a batch's replicates."""
    return {name: values.max(0) for name, values in kept.items()}


def drawn(function: Any, draw: Draw, shared: Any, batch: None) -> Numbers:
    """One replicate, from NumPy's generator; for small matrices threads only get in the way."""
    with blas().limit(limits=1):
        return function(draw.rng(), shared)


def error(cache: LowRank, keys: np.ndarray, queries: np.ndarray) -> float:
    """Squared Frobenius error of the scores over that of no scores at all."""
    scores = keys @ queries.T
    return float(((cache.scores(keys, queries) - scores) ** 2).sum() / (scores**2).sum())


def methods(keys: np.ndarray, queries: np.ndarray, rank: int) -> list[LowRank]:
    """The three of :data:`METHODS`."""
    return [kq_svd(keys, queries, rank), k_svd(keys, rank), joint_svd(keys, queries, rank)]


def cached_scores(rng: np.random.Generator, shared: tuple[Moments, Mapping[str, Any]]) -> Numbers:
    """Errors by method and rank, and the best of alternating least squares by rank."""
    law, own = shared
    keys, queries = (with_moment(rng, own["length"], moment) for moment in law)
    found = [methods(keys, queries, rank) for rank in own["ranks"]]
    solved = [alternating(rng, keys, queries, rank, own["steps"]) for rank in own["ranks"]]
    errors = [[error(c, keys, queries) for c in row] for row in found]
    return {"error": np.array(errors).T, "solver": np.array(solved)}


def keys_used(rng: np.random.Generator, shared: tuple[Moments, Mapping[str, Any]]) -> Numbers:
    """By how much the mean of log n_eff over a cache's queries rises, of softmax heads.

    Keys are drawn from N(0, Σ_K), in pairs ±k and with that second moment exactly; n_eff is
    ``(Σe^z)²/Σe^{2z}`` of the scores z at temperature s with ``s² = neff.cooling · tr Σ_KΣ_Q``.
    """
    law, own = shared
    keys, queries = (with_moment(rng, own["neff"]["length"], moment) for moment in law)
    tokens = with_moment(rng, own["neff"]["tokens"], law.keys)
    tokens = np.concatenate([tokens, -tokens])
    temperature = np.sqrt(own["neff"]["cooling"] * np.trace(law.keys @ law.queries))

    def used(scores: np.ndarray) -> float:
        scores /= temperature  # in place: to get memory for more takes as long as the sums
        weights = np.exp(scores, out=scores)
        sums, squares = weights.sum(0), np.einsum("kq,kq->q", weights, weights)
        return float(np.log(sums**2 / squares).mean())

    whole = used(tokens @ queries.T)
    gain = [
        [used(c.scores(tokens, queries)) - whole for c in methods(keys, queries, rank)]
        for rank in own["ranks"]
    ]
    return {"gain": np.array(gain).T}


def example(rng: np.random.Generator, q: float) -> Numbers:
    """K-SVD's error over the optimum with K = diag(1.01, 1), Q = diag(q, 1), turned at random."""
    rows = [np.linalg.qr(rng.standard_normal((6, 2)))[0] for _ in range(2)]
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    keys, queries = (r * s @ turn for r, s in zip(rows, ([1.01, 1], [q, 1]), strict=True))
    scores = keys @ queries.T
    rival = ((k_svd(keys, 1).scores(keys, queries) - scores) ** 2).sum()
    return {"ratio": rival / ((kq_svd(keys, queries, 1).scores(keys, queries) - scores) ** 2).sum()}


def alternating(
    rng: np.random.Generator, keys: np.ndarray, queries: np.ndarray, rank: int, steps: int
) -> float:
    """The error of alternating least squares from random factors; knows no singular values."""
    of_keys, of_queries = keys.T @ keys, queries.T @ queries
    b = rng.standard_normal((keys.shape[1], rank))
    for _ in range(steps):
        # Each is the best for the other, up to a basis; that of b is kept orthonormal.
        b = np.linalg.qr(of_keys @ (of_queries @ b))[0]
    a = of_queries @ b @ np.linalg.inv(b.T @ of_queries @ b)
    return error(LowRank(a, b, np.zeros(keys.shape[1])), keys, queries)


def coordinates(rng: np.random.Generator, shared: tuple[Moments, Mapping[str, Any]]) -> Numbers:
    """Largest relative changes of errors under changes of coordinates, in units of rounding.

    ``deficient``: what KQ-SVD misses where its rank exceeds the rank of the keys. ``balanced``: by
    how much the rivals miss the optimum with K' = U√S and Q' = V√S.
    """
    law, own = shared
    keys, queries = (with_moment(rng, own["length"], moment) for moment in law)
    d, rank = keys.shape[1], own["rank"]
    general = rng.standard_normal((d, d))
    rotation = np.linalg.qr(general)[0]
    factor = float(np.exp(rng.uniform(-1, 1)))
    before = [error(c, keys, queries) for c in methods(keys, queries, rank)]

    def change(matrix: np.ndarray) -> np.ndarray:
        k, q = keys @ matrix, queries @ np.linalg.inv(matrix).T
        return np.array([error(c, k, q) for c in methods(k, q, rank)]) / before - 1

    eps = np.finfo(float).eps
    any_change, turned, scaled = change(general), change(rotation), change(factor * rotation)
    flat = keys.copy()
    flat[:, own["deficient"] :] = 0
    shifted = keys + own["offset"]
    about = kq_svd(shifted, queries, rank, centre=shifted.mean(0)).scores(shifted, queries)
    moving = centred(shifted @ queries.T)
    own_tail = (np.linalg.svd(moving, compute_uv=False)[rank:] ** 2).sum()
    missed = ((centred(about) - moving) ** 2).sum()
    u, s, v = np.linalg.svd(keys @ queries.T, full_matrices=False)
    balanced = u[:, :d] * np.sqrt(s[:d]), v[:d].T * np.sqrt(s[:d])
    tail = (s[rank:d] ** 2).sum() / (s**2).sum()
    shares = [error(c, *balanced) / tail - 1 for c in methods(*balanced, rank)]
    unit_of = eps * np.linalg.cond(general) ** 2
    return {
        "kq_any": abs(any_change[0]) / unit_of,
        "rivals_any": np.abs(any_change[1:]).min(),
        "turned": np.abs(turned).max() / (eps * d),
        "keys_scaled": abs(scaled[1]) / (eps * d),
        "joint_scaled": abs(scaled[2]),
        "deficient": error(kq_svd(flat, queries, own["deficient"] + 1), flat, queries)
        / (eps * np.linalg.cond(keys)) ** 2,
        "centred": abs(missed - own_tail) / (eps * (shifted**2).sum() * (queries**2).sum()),
        "balanced": np.abs(shares).max() / (eps * s[0] ** 2 / (s[rank:d] ** 2).sum() * d),
    }


def balance(rng: np.random.Generator, shared: tuple[Moments, Mapping[str, Any]]) -> Numbers:
    """|err(Eigen) − err(K-SVD)| with keys β times larger, and against Q-only with them smaller."""
    law, own = shared
    keys, queries = (with_moment(rng, own["length"], moment) for moment in law)
    rank = own["rank"]
    alone = error(k_svd(keys, rank), keys, queries), error(k_svd(queries, rank), keys, queries)
    gaps = []
    for beta in own["balances"]:
        found = [joint_svd(f * keys, queries / f, rank) for f in (beta, 1 / beta)]
        gaps.append([abs(error(c, keys, queries) - a) for c, a in zip(found, alone, strict=True)])
    return dict(zip(("to_keys", "to_queries"), np.array(gaps).T, strict=True))


def groups(rng: np.random.Generator, own: Mapping[str, Any]) -> Numbers:
    """One key head, m query heads: KQ-SVD of the stacked queries against m query maps apart.

    ``together``: alternating least squares over the key map and a query map for each head.
    """
    keys = rng.standard_normal((own["length"], own["d"])) @ rng.standard_normal((own["d"],) * 2)
    queries = rng.standard_normal((own["count"], own["length"], own["d"])) @ rng.standard_normal(
        (own["count"], own["d"], own["d"])
    )
    rank, together = own["rank"], stacked(queries)
    total = ((keys @ together.T) ** 2).sum()
    best = kq_svd(keys, together, rank)
    shared = error(best, keys, together)
    apart = (
        sum(error(kq_svd(keys, q, rank), keys, q) * ((keys @ q.T) ** 2).sum() for q in queries)
        / total
    )
    of_queries, inverses = queries.swapaxes(1, 2) @ queries, np.linalg.pinv(queries)
    wanted = keys @ together.T
    maps = rng.standard_normal((own["count"], own["d"], rank))
    for _ in range(own["steps"]):
        seen = of_queries @ maps
        a = np.linalg.qr(seen.sum(0) @ np.linalg.pinv((maps.swapaxes(1, 2) @ seen).sum(0)))[0]
        # Of each head by itself: its best scores within what is stored, then the map to them.
        fitted = np.linalg.lstsq(keys @ a, wanted, rcond=None)[0]
        maps = inverses @ fitted.T.reshape(*queries.shape[:2], rank)
    solver = (
        sum(
            error(LowRank(a, b, np.zeros(own["d"])), keys, q) * ((keys @ q.T) ** 2).sum()
            for b, q in zip(maps, queries, strict=True)
        )
        / total
    )
    return {"together": solver / shared - 1, "apart": 1 - apart / shared}


def calibrated(draw: Draw, replicates: int, shared: tuple[Moments, int, int, int]) -> Numbers:
    """Risks of KQ-SVD and K-SVD calibrated on n_K keys and n_Q queries, a whole batch at once.

    ``risk`` and ``loss`` are on new and on the calibration's tokens, ``rival`` is K-SVD's risk;
    ``worse`` says how often KQ-SVD's risk is the larger one. From the loss that of the factors
    without calibration is taken off, of which the mean is known: their risk.
    """
    rng, (law, rank, n_keys, n_queries) = draw.rng(), shared
    keys, queries = (
        gaussian_triangle(rng, replicates, n, len(moment)) @ root_of(moment)
        for n, moment in zip((n_keys, n_queries), law, strict=True)
    )
    with blas().limit(limits=1):
        best, rival = kq_svd(keys, queries, rank), k_svd(keys, rank)
    ideal = kq_svd(root_of(law.keys), root_of(law.queries), rank)
    left = keys.swapaxes(1, 2) @ keys / n_keys, queries.swapaxes(1, 2) @ queries / n_queries

    def risk(cache: LowRank, keys: np.ndarray, queries: np.ndarray) -> np.ndarray:
        change = cache.product - np.eye(keys.shape[-1])
        return np.asarray(((keys @ change) * (change @ queries)).sum((-1, -2)))

    risks = risk(best, *law), risk(rival, *law)
    loss = risk(best, *left) - risk(ideal, *left) + risk(ideal, *law)
    return {
        "risk": risks[0].mean(),
        "loss": loss.mean(),
        "rival": risks[1].mean(),
        "worse": (risks[0] > risks[1]).mean(),
    }


def head(rng: np.random.Generator, shared: tuple[Mapping[str, Any], float]) -> Numbers:
    """A random head compressed on one sample of tokens and tried on another.

    Errors of scores (all of a query's shifts apart, as softmax has it) and of outputs, each of
    KQ-SVD, K-SVD and KQ-SVD of centred keys, squared and relative.
    """
    own, mean = shared
    d, width, rank = own["d"], own["width"], int(rng.choice(own["ranks"]))
    decay = rng.uniform(*own["decay"])
    spread = np.arange(1.0, d + 1) ** -decay
    maps = rng.standard_normal((3, d, width)) / np.sqrt(d)
    offset = mean * rng.standard_normal(width) * np.linalg.norm(spread) / np.sqrt(d)
    sharp = np.exp(rng.uniform(*own["log_sharpness"]))

    def tokens() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = rng.standard_normal((2, own["length"], d)) * spread
        return x[0] @ maps[0] + offset, sharp * x[1] @ maps[1], x[0] @ maps[2]

    keys, queries, _ = tokens()
    found = [
        kq_svd(keys, queries, rank),
        k_svd(keys, rank),
        kq_svd(keys, queries, rank, centre=keys.mean(0)),
    ]
    keys, queries, values = tokens()
    scores = keys @ queries.T / np.sqrt(width)
    size = (centred(scores) ** 2).sum()
    out = outputs(scores, values)
    changed = [c.scores(keys, queries) / np.sqrt(width) for c in found]
    return {
        name: value
        for method, own_scores in zip(("kq", "k", "centred"), changed, strict=True)
        for name, value in (
            (f"score_{method}", (centred(own_scores - scores) ** 2).sum() / size),
            (f"output_{method}", ((outputs(own_scores, values) - out) ** 2).sum() / (out**2).sum()),
        )
    }
