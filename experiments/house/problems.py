"""Problems of the house law: keys, target, noise, and sets of heads at tuned temperatures.

Temperatures are tuned by a pilot simulation on draws of its own, by which nothing is judged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import ortho_group

from sims.base.arrays import fill_up
from sims.problem import TARGETS, TrigonometricSeries
from sims.problem.diversity import geometric_gram, mean_index
from sims.problem.tables import TABLES
from sims.study.study import Fields

from .keys import KeyLaw, key_law
from .moments import Sums, replicate_sums
from .sets import HAAR, LADDER, SETS

GRID = 2.0 ** np.arange(-3.5, 2.51, 0.5)
"""Bandwidths that the pilot tries, over √d_k."""
LEAST_SKILL = 0.02
"""Skill below which no temperature is worth tuning: the draw is rejected."""
PILOT = 16
"""Batches of a pilot."""
REPLICATES = 2
"""Replicates of a batch. Errors differ by query, not by the keys that are drawn: more would cost
much and tell little."""
QUERIES = {64: 64, 512: 16, 4096: 8}
"""Number of keys to queries of a batch."""
ROTATIONS = {64: 4, 512: 1, 4096: 1}
"""Number of keys to rotations of a batch, each of which an equal part of the queries meets."""
PROBES = 8
"""Queries of a batch, its first ones, at which simulation is held against theory."""
MOST_TABLE_KEYS = 512
"""Keys drawn from a table, at most: no more than half of its rows."""


Arrays = Mapping[str, np.ndarray]
Keep = Callable[[str, Callable[[], Arrays]], Arrays]
"""Function of the name of a measurement and of what makes it: kept, or made."""


@dataclass(frozen=True)
class Problem:
    """A problem of the law.

    Attributes:
        fields: what the law drew.
        law: of the keys and queries.
        target: m.
        variance: of m over the keys.
        noise_sd: σ.
        n: number of keys.
        query_frames: of the sets, (S, H, d, d_k).
        key_frames: the same for keys.
        bandwidth: of each head at the common temperature and at the set's own best, (S, 2, H).
        index: mean diversity index of the key subspaces of each set, (S,).
        keys: effective number of keys of each head, by the pilot, (S, 2, H).
        skill: of the first Haar set at its best temperature, by the pilot.
        edge: whether the own best temperature of some set is an end of the grid.
        number: of the problem, from 0; None of one that no draw made.
    """

    fields: dict[str, Any]
    law: KeyLaw
    target: TrigonometricSeries
    variance: float
    noise_sd: float
    n: int
    query_frames: np.ndarray
    key_frames: np.ndarray
    bandwidth: np.ndarray
    index: np.ndarray
    keys: np.ndarray
    skill: float
    edge: bool
    number: int | None

    def queries(self, batch: int) -> np.ndarray:
        """The queries of a batch, (Q, d), which are part of the problem."""
        rng = np.random.default_rng([self.fields["queries"], batch])
        return self.law.queries(rng, QUERIES[self.n])

    @property
    def heads(self) -> int:
        """Number of heads H."""
        return int(self.key_frames.shape[1])

    @property
    def fits(self) -> bool:
        """True if orthogonal heads have room: H·d_k ≤ d."""
        _, heads, dimension, width = self.key_frames.shape
        return bool(heads * width <= dimension)


def measured(_: str, measure: Callable[[], Arrays]) -> Arrays:
    """The measurement itself, which nobody keeps."""
    return measure()


def draw_problem(fields: Fields, keep: Keep = measured) -> Problem | None:
    """The problem of a draw; None where no temperature is worth tuning.

    Rejected are draws whose pilot error is least at an end of the grid, or whose skill, one minus
    the error over the variance of the target, is below :data:`LEAST_SKILL`. What the pilot measures
    is kept for the other method.
    """
    dimension, heads, width = fields["size"]
    law = key_law(fields, dimension)
    n = min(fields["keys"], MOST_TABLE_KEYS) if law.family in TABLES else fields["keys"]
    target = draw_target(fields, dimension, width)
    rng = np.random.default_rng(fields["pilot"])
    sample, times = law.keys(rng, 1, 4096)
    variance = float(np.cov(target.values(sample[0]), aweights=times[0], ddof=0))
    noise_sd = (fields["noise_ratio"] * variance) ** 0.5
    key_frames = draw_key_frames(fields["frames"], dimension, heads, width)
    query_frames = key_frames
    if fields["apart"]:
        query_frames = draw_query_frames(key_frames, fields["overlap"], fields["query_frames"])
    sharpness = np.ones(heads)
    if fields["uneven"]:
        normal = np.random.default_rng(fields["sharpness"]).normal(size=heads)
        sharpness = np.exp(0.5 * normal)
    # In float64, so that a problem is the same to rounding whatever the devices that draw it.
    frames = (query_frames[None], key_frames[None])
    pilot = partial(sums_of, target, frames=frames, kernel=fields["kernel"], precision="float64")
    scale = width**0.5 * sharpness
    tried = np.broadcast_to(GRID[:, None] * scale, (SETS, len(GRID), heads))

    def errors_of_pilot() -> Arrays:
        draws = draw_pilot(law, fields["pilot"], n)
        rows = [squared_errors(pilot(*draw, bandwidth=tried), noise_sd) for draw in draws]
        return {"errors": np.mean(rows, axis=0)}

    errors = keep("errors", errors_of_pilot)["errors"]
    own = [inner_minimum(row) for row in errors]
    common = own[HAAR]
    skill = 1 - errors[HAAR].min() / variance
    if common is None or skill < LEAST_SKILL:
        return None
    ends = GRID[errors.argmin(1)]
    best = [float(end) if found is None else found for found, end in zip(own, ends, strict=True)]
    shift = fields["shift"] if fields["shifted"] else 1.0
    levels = np.stack([np.full(SETS, common), np.array(best)], axis=1)
    bandwidth = shift * levels[..., None] * scale
    index = mean_index(np.stack([geometric_gram(frames) for frames in key_frames]))

    def keys_of_pilot() -> Arrays:
        draws = draw_pilot(law, fields["pilot"], n)
        rows = [pilot(*draw, bandwidth=bandwidth).keys.mean((0, 4)) for draw in draws]
        return {"keys": np.mean(rows, axis=0)}

    return Problem(
        fields=dict(fields) | {"rejected": fields.attempt},
        law=law,
        target=target,
        variance=variance,
        noise_sd=noise_sd,
        n=n,
        query_frames=query_frames,
        key_frames=key_frames,
        bandwidth=bandwidth,
        index=index,
        keys=keep("keys", keys_of_pilot)["keys"],
        skill=float(skill),
        edge=any(found is None for found in own),
        number=fields.number,
    )


def draw_target(drawn: Fields, dimension: int, width: int) -> TrigonometricSeries:
    """The target, of d_k to 2·d_k random directions or of all, with its length scale."""
    rng = np.random.default_rng(drawn["target"])
    basis = np.eye(dimension)
    if drawn["few_directions"]:
        count = min(dimension, round(width * drawn["directions"]))
        basis = ortho_group.rvs(dimension, random_state=rng)[:, :count]
    directions = basis.shape[1]
    family = "rbf"
    options = {
        "seed": int(rng.integers(2**62)),
        "lengthscale": drawn["lengthscale"] * directions**0.5,
        "features": drawn["features"],
    }
    if drawn["smoothness"] == "matern":
        family = "matern"
        options["nu"] = drawn["roughness"]
    series = TARGETS[family](directions, **options)
    frequency = np.asarray(series.frequency) @ basis.T
    return TrigonometricSeries(series.amplitude, frequency, series.phase)


def orthonormal(frames: np.ndarray) -> np.ndarray:
    """Frames (…, d, d_k) by QR with positive diagonal, so that they vary smoothly."""
    basis, triangle = np.linalg.qr(frames)
    signs = np.sign(np.diagonal(triangle, axis1=-2, axis2=-1))
    return basis * signs[..., None, :]


def haar_frames(rng: np.random.Generator, count: int, dimension: int, width: int) -> np.ndarray:
    """Independent uniform frames (count, d, d_k)."""
    draws = [ortho_group.rvs(dimension, random_state=rng)[:, :width] for _ in range(count)]
    return np.stack(draws)


def draw_key_frames(seed: int, dimension: int, heads: int, width: int) -> np.ndarray:
    """Key frames of the sets (S, H, d, d_k): the ladder, a second Haar set, the orthogonal one.

    A rung mixes a common frame with those of the Haar set, so that the mean index is the rung's
    share of the Haar set's. Where orthogonal frames have no room the last set is Haar, too.
    """
    rng = np.random.default_rng(seed)
    base = haar_frames(rng, 1, dimension, width)
    first, second, third = (haar_frames(rng, heads, dimension, width) for _ in range(3))

    def mixed(share: float) -> np.ndarray:
        return orthonormal((1 - share) ** 0.5 * base + share**0.5 * first)

    def excess(share: float, rung: float) -> float:
        return float(mean_index(geometric_gram(mixed(share))) - rung * full)

    full = float(mean_index(geometric_gram(first)))
    rungs = [mixed(brentq(excess, 0, 1, args=(rung,), xtol=1e-4)) for rung in LADDER[:-1]]
    if heads * width <= dimension:
        columns = ortho_group.rvs(dimension, random_state=rng)[:, : heads * width]
        third = columns.reshape(dimension, heads, width).transpose(1, 0, 2)
    return np.stack([*rungs, first, second, third])


def draw_query_frames(key_frames: np.ndarray, overlap: float, seed: int) -> np.ndarray:
    """Query frames that share a part ω of the key frames, the rest the same in every set."""
    _, heads, dimension, width = key_frames.shape
    other = haar_frames(np.random.default_rng(seed), heads, dimension, width)
    return orthonormal(overlap**0.5 * key_frames + (1 - overlap) ** 0.5 * other)


def inner_minimum(errors: np.ndarray) -> float | None:
    """The bandwidth of least error on the grid, by a parabola in its logarithm; None at an end."""
    place = int(errors.argmin())
    if place in (0, len(GRID) - 1):
        return None
    before, least, after = errors[place - 1 : place + 2]
    shift = 0.5 * (before - after) / (before - 2 * least + after)
    return float(GRID[place] * (GRID[1] / GRID[0]) ** shift)


def draw_pilot(law: KeyLaw, seed: int, n: int) -> list[tuple[Any, np.ndarray]]:
    """Keys and queries of each batch of a pilot, on draws of its own."""
    rng = np.random.default_rng([seed, 1])
    return [(law.keys(rng, REPLICATES, n), law.queries(rng, QUERIES[n])) for _ in range(PILOT)]


def squared_errors(sums: Sums, noise_sd: float) -> np.ndarray:
    """Mean squared error of each set's ensemble at each temperature, (S, T)."""
    deviation = sums.deviation.mean(3)
    noise = noise_sd**2 * sums.ensemble_noise
    return (deviation**2 + noise).mean((0, 3))


DIMENSION, WIDTH = 32, 8
"""What keys and frames are padded to by zero columns, so that few programs are compiled."""


def sums_of(
    target: TrigonometricSeries,
    keys: tuple[np.ndarray, np.ndarray],
    queries: np.ndarray,
    frames: Sequence[np.ndarray],
    bandwidth: np.ndarray,
    kernel: str,
    precision: str = "float32",
) -> Sums:
    """The sums of given keys and queries, by a program for keys and frames filled up with zeros.

    Args:
        target: m.
        keys: distinct keys (R, n, d) and how often each was drawn (R, n).
        queries: (Q, d).
        frames: of queries and keys, (G, S, H, d, d_k): the g-th of G groups of queries meets the
            g-th.
        bandwidth: (S, T, H).
        kernel: gaussian or softmax.
        precision: of the sums.
    """
    points, times = keys
    groups = len(frames[0])
    arrays = (
        fill_up(points, DIMENSION),
        times,
        target.values(points),
        fill_up(queries, DIMENSION).reshape(groups, -1, DIMENSION),
        target.values(queries).reshape(groups, -1),
        *(fill_up(of_groups, DIMENSION, WIDTH) for of_groups in frames),
        bandwidth**-2.0,
    )
    rounded = [np.asarray(array, precision) for array in arrays]
    sums = replicate_sums(*rounded, np.asarray(kernel == "softmax"))
    return Sums(*(_joined(np.asarray(values, float)) for values in sums))


def _joined(values: np.ndarray) -> np.ndarray:
    """Groups of queries (R, G, …, Q) as one, (R, …, G·Q)."""
    moved = np.moveaxis(values, 1, -2)
    return moved.reshape(*moved.shape[:-2], -1)
