"""Errors by levels, and corrections of blocks: one number a problem."""

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import falls, jackknife
from sims.judgement import conventions
from sims.judgement.effects import Effects, gap, mean, share, sized_outcome
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

LEVELS, RANK, BOTH = range(3)
"""Parts of the error of scores."""
GAUSSIAN, FOURTH = 1, 3
"""Orders of the cumulants of a block, less 1."""


STRICT, LOOSE = conventions.WIDER
"""Further thresholds of what a line may leave of a log error's spread."""


def curvature(error: np.ndarray) -> np.ndarray:
    """Share of the spread of log e_L that a line in L leaves, (…); 1 if the line does not fall.

    Args:
        error: squared errors (…, L), of 1, 2, … levels.
    """
    log = np.log(error)
    level = np.arange(error.shape[-1]) - (error.shape[-1] - 1) / 2
    off = log - log.mean(-1, keepdims=True)
    steep = off @ level / (level @ level)
    left = off - steep[..., None] * level
    share = np.sqrt((left**2).sum(-1) / (off**2).sum(-1))
    return np.where(steep < 0, share, 1.0)


def decays(
    sampled: np.ndarray, predicted: np.ndarray, half: np.ndarray, tolerance: float
) -> Effects:
    """Tolerance less the curvature of the error of few levels, up to half of the target's levels.

    Args:
        sampled: squared errors (N, B, L), of 1, 2, … levels.
        predicted: the same by theory, (M, L).
        half: (M,) of the levels.
        tolerance: largest share of the spread that a line in L may leave.
    """
    draws = []
    for errors, count in zip(sampled, half, strict=False):
        draws.append(jackknife({"": errors[:, :count]}, lambda mean: curvature(mean[""])))
    theory = [curvature(row[:count]) for row, count in zip(predicted, half, strict=True)]
    return share(tolerance - np.array(draws), predicted=tolerance - np.array(theory))


def effects(results: Results) -> dict[str, Effects]:
    """Effects by name, positive where the claim holds."""
    law = results.law
    sampled = stack_batches(results, "error")
    theory = law["error"]
    half = law["levels"] // 2
    rows = np.arange(len(sampled))
    last = half[: len(sampled)] - 1
    both = sampled[rows, :, BOTH, last]
    parts = theory[rows, :, last]
    block = stack_batches(results, "remainder")
    kept = sampled[:, :, LEVELS], theory[:, LEVELS], half
    return {
        "decay": decays(*kept, conventions.TOLERANCES["slope"]),
        "decay, strict": decays(*kept, STRICT),
        "decay, loose": decays(*kept, LOOSE),
        "parts": gap(both, parts[:, LEVELS] + parts[:, RANK]),
        "roads": mean(both / parts[:, BOTH, None] - 1),
        "correction": sized_outcome(falls(block, FOURTH, GAUSSIAN)),
    }


def panels(results: Results) -> xr.Dataset:
    """Squared errors of 1, 2, … levels by theory, (problem, L)."""
    return xr.Dataset({"predicted": (("number", "level"), results.law["error"][:, LEVELS])})


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values, one row per problem; ``narrow`` is 1 if heads are narrower than tokens."""
    table = drawn_values(results, "taps", "order")
    return table.assign(narrow=(table["head_width"] < table["width"]).astype(float))
