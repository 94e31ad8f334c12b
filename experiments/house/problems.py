"""Problems of the house law: keys, target, noise, and sets of heads at tuned temperatures.

Temperatures are tuned by a pilot simulation on draws of its own, by which nothing is judged.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import ortho_group

from sims.problem import TARGETS, TrigonometricSeries
from sims.problem.diversity import geometric_gram, mean_index
from sims.problem.tables import TABLES
from sims.study.study import Fields

from .frames import draw_key_frames, draw_query_frames, with_halves
from .keys import KeyLaw, key_law
from .pilot import QUERIES, TOGETHER, Pilot, Tuned
from .sets import ALIGNED, HAAR, HALF_ALIGNED, HALF_HAAR, OWN_BEST, SETS, THIRD

LEAST_SKILL = 0.02
"""Skill below which no temperature is worth tuning: the draw is rejected, or the reading left."""
PROBES = 8
"""Queries of a batch, its first ones, at which simulation is held against theory."""
MOST_TABLE_KEYS = 512
"""Keys drawn from a table, at most: no more than half of its rows."""


@dataclass(frozen=True)
class Problem:
    """A problem of the law.

    Attributes:
        fields: what the law drew.
        law: of the keys and queries.
        target: m.
        mean: of m over the keys.
        variance: of m over the keys.
        noise_sd: σ.
        n: number of keys.
        query_frames: of the sets as drawn, (S, H, d, d_k).
        key_frames: of the sets, (S, H, d, d_k), for queries, too, where they are equally good.
        bandwidth: of each head as drawn, at the common temperature and the set's own, (S, 2, H).
        equal_bandwidth: the same of equally good sets; NaN where no temperature is best.
        gain: of each set's average as drawn, at its own best temperature, (S,); NaN off the ladder.
        index: mean diversity index of the key subspaces of each set, (S,).
        keys: effective number of keys of the ladder's Haar heads as drawn, by the pilot, (H,).
        skill: of the Haar set that selects draws at its best temperature, by the pilot.
        ridge: error of ridge regression on x over that of this set, by the pilot.
        full_head: the same of one head that sees all of x.
        rival: error of the third random set over that of the ladder's, by the pilot.
        edge: whether the own best temperature of some set as drawn is an end of the grid.
        number: of the problem, from 0; None of one that no draw made.
    """

    fields: dict[str, Any]
    law: KeyLaw
    target: TrigonometricSeries
    mean: float
    variance: float
    noise_sd: float
    n: int
    query_frames: np.ndarray
    key_frames: np.ndarray
    bandwidth: np.ndarray
    equal_bandwidth: np.ndarray
    gain: np.ndarray
    index: np.ndarray
    keys: np.ndarray
    skill: float
    ridge: float
    full_head: float
    rival: float
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

    @property
    def equal(self) -> bool:
        """True if the problem has a version with equally good heads."""
        return bool(np.isfinite(self.equal_bandwidth).all())


Arrays = Mapping[str, np.ndarray]
Keep = Callable[[str, Callable[[], Arrays]], Arrays]
"""Function of the name of a measurement and of what makes it: kept, or made."""


def draw_problem(fields: Fields, keep: Keep = lambda name, measure: measure()) -> Problem | None:
    """The problem of a draw; None where no temperature is worth tuning.

    Rejected are draws for which a Haar set that is not judged has least error at an end of the
    grid, or whose skill, one minus the error over the variance of the target, is below
    :data:`LEAST_SKILL`.

    Args:
        fields: what the law drew.
        keep: keeps what the pilot finds, since both methods need it.
    """
    dimension, heads, width = fields["size"]
    law = key_law(fields, dimension)
    n = min(fields["keys"], MOST_TABLE_KEYS) if law.family in TABLES else fields["keys"]
    target = draw_target(fields, dimension, width)
    sample, times = law.keys(np.random.default_rng(fields["pilot"]), 1, 4096)
    values = target.values(sample[0])
    mean = float(np.average(values, weights=times[0]))
    variance = float(np.average((values - mean) ** 2, weights=times[0]))
    noise_sd = (fields["noise_ratio"] * variance) ** 0.5
    selecting, key_frames = draw_key_frames(fields["frames"], dimension, heads, width)
    frames = [np.concatenate([selecting, with_halves(key_frames)])] * 2
    if fields["apart"]:
        queries = draw_query_frames(frames[1], fields["overlap"], fields["query_frames"])
        frames[0] = np.concatenate([queries[:1], with_halves(queries[1:-2])])
    pilot = Pilot(law, target, mean, noise_sd, n, fields["kernel"], fields["pilot"])
    found: Mapping[str, Any] = keep("pilot", lambda: tune(pilot, fields, frames, variance))
    if "ridge" not in found:
        return None
    query_frames, key_frames = (array[1:] for array in frames)
    return Problem(
        fields=dict(fields) | {"rejected": fields.attempt},
        law=law,
        target=target,
        mean=mean,
        variance=variance,
        noise_sd=noise_sd,
        n=n,
        query_frames=query_frames,
        key_frames=key_frames,
        index=mean_index(np.stack([geometric_gram(frames) for frames in key_frames])),
        number=fields.number,
        **{name: values[()] for name, values in found.items()},
    )


def tune(
    pilot: Pilot, fields: Mapping[str, Any], frames: list[np.ndarray], variance: float
) -> Arrays:
    """What the pilot finds, named as in :class:`Problem`; of a rejected draw the skill alone.

    Args:
        pilot: the pilot.
        fields: what the law drew.
        frames: of queries and keys, of the set that selects and then of all sets, (S + 1, …).
        variance: of the target.
    """
    heads, width = frames[1].shape[1], frames[1].shape[3]
    sharpness = np.ones(heads)
    if fields["uneven"]:
        normal = np.random.default_rng(fields["sharpness"]).normal(size=heads)
        sharpness = np.exp(0.5 * normal)
    of_sets = with_halves(np.tile(sharpness, (HALF_ALIGNED, 1)))
    scale = width**0.5 * np.concatenate([sharpness[None], of_sets])
    tuned: list[Tuned] = []
    for some in (slice(0, TOGETHER), slice(TOGETHER, None)):
        tuned.append(pilot.tuned((frames[0][some], frames[1][some]), scale[some]))
        skill = 1 - tuned[0].error[0] / variance
        if not tuned[0].inside[0] or skill < LEAST_SKILL:
            return {"skill": np.array(skill)}
    level = np.append(tuned[0].level, tuned[1].level)[1:]
    inside = np.append(tuned[0].inside, tuned[1].inside)[1:]
    shift = fields["shift"] if fields["shifted"] else 1.0
    levels = np.stack([np.full(SETS, level[HAAR]), level], axis=1)
    bandwidth = shift * levels[..., None] * scale[1:, None]
    ladder = frames[0][1 : TOGETHER + 1], frames[1][1 : TOGETHER + 1]
    gain, keys = pilot.gains(ladder, bandwidth[:TOGETHER, OWN_BEST])
    ridge, full_head = pilot.baselines() / tuned[0].error[0]
    return {
        "bandwidth": bandwidth,
        "equal_bandwidth": equally_good(pilot, frames[1][1:], variance),
        "gain": np.append(gain, np.full(SETS - TOGETHER, np.nan)),
        "keys": keys[HAAR],
        "skill": np.array(skill),
        "ridge": np.array(ridge),
        "full_head": np.array(full_head),
        "rival": np.array(tuned[1].error[1] / tuned[1].error[0]),  # its second set and its first
        "edge": np.array(not inside.all()),
    }


def equally_good(pilot: Pilot, frames: np.ndarray, variance: float) -> np.ndarray:
    """Bandwidths of the sets at both temperatures, turned by common uniform rotations, (S, 2, H).

    The best ones of the Haar set and of the aligned set; each half has its own as the second. NaN
    where one of these two has least error at an end of the grid, or both have a skill below
    :data:`LEAST_SKILL`. The third set fills up the program's five.
    """
    places = [ALIGNED, HAAR, HALF_ALIGNED, HALF_HAAR, THIRD]
    heads, width = frames.shape[1], frames.shape[3]
    scale = np.full((SETS, heads), width**0.5)
    level, inside, error = pilot.tuned((frames[places],) * 2, scale[places], turned=True)
    levels = np.tile(level[[1, 0]], (SETS, 1))
    levels[[HALF_ALIGNED, HALF_HAAR], OWN_BEST] = level[2:4]
    if not inside[:2].all() or 1 - error[:2].min() / variance < LEAST_SKILL:
        levels[:] = np.nan
    return levels[..., None] * scale[:, None]


def draw_target(drawn: Mapping[str, Any], dimension: int, width: int) -> TrigonometricSeries:
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
