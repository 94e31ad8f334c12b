"""The drawn problems, a target and a query each: the same on both roads."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from sims.problem import TARGETS, TrigonometricSeries

Settings = Mapping[str, Any]
"""The experiment's own settings, as in its file."""
ENTMAX = {"sparsemax": 1.0, "1.5-entmax": 2.0, "4/3-entmax": 3.0}
"""α-entmax by name, with the power ν of its kernel."""
WEIGHED = ("softmax", "relu gap", *ENTMAX)
"""Rules whose parameter is a temperature."""
TUNED = (*WEIGHED, "top-k")
"""These, and the one whose parameter is its number k of keys."""
SMOOTHNESS = ("β = 1", "β = 2", "analytic")
KEPT = {"top-k, k fixed": 0.0, "top-k, k ∝ n": 1.0, "top-k, k ∝ n^(4/(4+d))": np.nan}
"""Ways to keep top-k, by the exponent of k in n; NaN stands for 4/(4 + d)."""


class Drawn(NamedTuple):
    """Targets of one family at P queries.

    Attributes:
        amplitude: (B, P, J), of the family's B smoothnesses.
        frequency: (P, J, d).
        phase: (P, J).
        queries: (P, d).
    """

    amplitude: np.ndarray
    frequency: np.ndarray
    phase: np.ndarray
    queries: np.ndarray


def drawn(settings: Settings, width: int, count: int) -> tuple[Drawn, Drawn]:
    """Lacunary targets of smoothness 1 and 2, which share their waves, and analytic ones.

    Coordinates of queries are normal, given that they lie within ``query_reach`` of their standard
    deviations from 0.
    """
    seeds = range(settings["target_seed"], settings["target_seed"] + count)
    rng = np.random.default_rng([settings["query_seed"], width])
    outside = ndtr(-settings["query_reach"])
    queries = settings["query_scale"] * ndtri(rng.uniform(outside, 1 - outside, (count, width)))
    levels, analytic = settings["levels"], settings["analytic"]
    rough = [
        [TARGETS["holder"](width, seed=seed, beta=beta, levels=levels) for seed in seeds]
        for beta in (1.0, 2.0)
    ]
    smooth = [[TARGETS["rbf"](width, seed=seed, **analytic) for seed in seeds]]
    return collected(rough, queries), collected(smooth, queries)


def collected(family: list[list[TrigonometricSeries]], queries: np.ndarray) -> Drawn:
    """Targets by smoothness and problem, whose waves do not depend on the smoothness."""
    return Drawn(
        np.array([[np.asarray(one.amplitude) for one in every] for every in family]),
        np.stack([np.asarray(one.frequency) for one in family[0]]),
        np.stack([np.asarray(one.phase) for one in family[0]]),
        queries,
    )


def parameters(settings: Settings, road: str, width: int) -> dict[str, np.ndarray]:
    """Temperatures of every rule, and whole numbers of keys of top-k, at a head width."""
    grids = settings["parameters"][width]
    made = {rule: np.geomspace(*grids[rule][road]) for rule in TUNED}
    return made | {"top-k": np.unique(np.round(made["top-k"]))}
