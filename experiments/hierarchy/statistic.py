"""Errors by levels, corrections of blocks, and mixtures of scales: one number a problem."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.base.estimates import jackknife, ratio
from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches, outcome
from sims.study.batches import stack_batches
from sims.study.results import Results

LEVELS, RANK, BOTH = range(3)
"""Parts of the error of scores."""
SCORES, OUTPUTS, SINGLE = range(3)
"""Arms of the mixtures."""
GAUSSIAN, THIRD, FOURTH = 1, 2, 3
"""Orders of the cumulants of a block, less 1."""


def straightness(error: np.ndarray) -> np.ndarray:
    """The house tolerance less the share of the spread of log e_L that a line in L leaves, (…).

    Negative, too, where the line does not fall.

    Args:
        error: squared errors (…, L), of 1, 2, … levels.
    """
    log = np.log(error)
    level = np.arange(error.shape[-1]) - (error.shape[-1] - 1) / 2
    off = log - log.mean(-1, keepdims=True)
    steep = off @ level / (level @ level)
    left = off - steep[..., None] * level
    share = np.sqrt((left**2).sum(-1) / (off**2).sum(-1))
    return np.asarray(house.TOLERANCES["slope"] - np.where(steep < 0, share, 1.0))


def decays(sampled: np.ndarray, predicted: np.ndarray, half: np.ndarray) -> Effects:
    """How far the error of few levels falls geometrically, up to half of the target's levels.

    Args:
        sampled: squared errors (N, B, L), of 1, 2, … levels.
        predicted: the same by theory, (M, L).
        half: (M,) of the levels.
    """
    draws = []
    for errors, count in zip(sampled, half, strict=False):
        draws.append(jackknife({"": errors[:, :count]}, lambda mean: straightness(mean[""])))
    theory = [straightness(row[:count]) for row, count in zip(predicted, half, strict=True)]
    return of_batches(np.stack(draws), predicted=np.array(theory))


def rise(values: np.ndarray, later: int, earlier: int) -> np.ndarray:
    """Relative rises (N, B) between two columns of batches (N, B, …)."""
    return ratio(values[..., later], values[..., earlier], axis=1) - 1


def effects(results: Results) -> Mapping[str, Effects]:
    """Effects by name, positive where the claim holds."""
    law = results.predictions["law"]
    error, arms = law["error"].values, law["mse"].values
    names = ("error", "remainder", "mse")
    sampled, block, mse = (stack_batches(results, name) for name in names)
    half = law["levels"].values // 2
    rows = np.arange(len(sampled))
    last = half[: len(sampled)] - 1
    both = sampled[rows, :, BOTH, last]
    predicted = error[rows, :, last]
    silent = np.full((len(sampled), 2), np.nan)
    known = law["in_range"].values.astype(bool)
    made = {
        "decay": decays(sampled[:, :, LEVELS], error[:, LEVELS], half),
        "parts": gap(both, predicted[:, LEVELS] + predicted[:, RANK]),
        "roads": of_batches(both / predicted[:, BOTH, None] - 1, kind="estimate"),
        "definite": of_batches(silent, kind="estimate", predicted=law["definite"].values),
    }
    for name, order in (("correction", FOURTH), ("third cumulant", THIRD)):
        change = rise(block, order, GAUSSIAN)
        made[name] = outcome(-change, size=change.mean(1))
    for name, better, worse in (
        ("one bandwidth", SINGLE, OUTPUTS),
        ("ensemble", OUTPUTS, SCORES),
    ):
        theory = arms[:, worse] / arms[:, better] - 1
        made[name] = of_batches(rise(mse, worse, better), predicted=theory, valid=known)
    return made


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values, one row per problem; ``narrow`` is 1 if heads are narrower than tokens."""
    law = results.predictions["law"].drop_vars(["taps", "order", "shares", "queries"])
    columns = {k: v.values for k, v in law.data_vars.items() if v.dims == ("number",)}
    narrow = (law["head_width"] < law["width"]).values.astype(float)
    return pd.DataFrame(columns).drop(columns=["definite", "in_range"]).assign(narrow=narrow)
