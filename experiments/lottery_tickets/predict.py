"""Typical and largest errors of a target's entries by the laws of subset sums."""

from functools import partial

import numpy as np
import xarray as xr

from sims.theory.neighbours import subset_sums as sums

from .problems import FEW, ITEMS, Problem

FAR = np.array([12, 20, 28, 36])
"""Items an entry at which the law is far in its limit, and computed."""
PARTS = 4
"""Parts of the draws, whose spread says how surely the items are known."""
ENTRIES = 8 * 2 ** np.arange(6)
"""Numbers of entries, of one head or more, whose largest error is asked for."""
ACCURACIES = 0.5 ** np.arange(12, 25, 3)
"""Errors for which the needed items are asked."""


def theory(problem: Problem, rng: np.random.Generator, draws: int) -> xr.Dataset:
    """Errors of a target's entries, by drawn subset sums, with what was drawn for it.

    ``log_largest`` (far, entries) is the mean log of the largest error of some of the target's
    entries, ``log_entry`` (per_entry) that of one, and ``log_scaled`` that of W_QK's by scale;
    ``needed`` (part, accuracy, entries) are items at which the former falls through an accuracy.
    """
    pool = sums.products(rng, draws, FAR[-1])
    curves = []
    for part in np.array_split(pool, PARTS):
        entries = np.resize(problem.target, len(part))
        curves.append([sums.log_error(part[:, :k], entries, ENTRIES) for k in FAR])
    fall = partial(np.interp, -np.log(ACCURACIES), fp=FAR)
    needed = np.apply_along_axis(fall, 1, -np.array(curves))
    less = pool[: draws // PARTS]
    entries = np.resize(problem.target, len(less))
    near = [sums.log_error(less[:, :k], entries, 1) for k in ITEMS[-2:]]
    few = less[:, : ITEMS[FEW]]
    scores = np.resize(problem.target[0, 0], len(less))
    scaled = [sums.log_error(c * few, scores, 1) for c in problem.factors]
    return xr.Dataset(
        {
            **problem.drawn,
            "log_largest": (("far", "entries"), np.mean(curves, axis=0)),
            "needed": (("part", "accuracy_asked", "entries"), needed),
            "log_entry": ("per_entry", near),
            "log_scaled": ("scale", scaled),
        },
        {"far": FAR, "entries": ENTRIES, "accuracy_asked": ACCURACIES, "per_entry": ITEMS[-2:]},
    )
