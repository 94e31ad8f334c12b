"""Errors by levels, corrections of blocks, and mixtures of scales: one number a problem."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.base.estimates import jackknife
from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches
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
    log, level = np.log(error), np.arange(error.shape[-1]) - (error.shape[-1] - 1) / 2
    off = log - log.mean(-1, keepdims=True)
    steep = off @ level / (level @ level)
    left = off - steep[..., None] * level
    share = np.sqrt((left**2).sum(-1) / (off**2).sum(-1))
    return np.asarray(house.TOLERANCES["slope"] - np.where(steep < 0, share, 1.0))


def simulated(results: Results, name: str) -> np.ndarray:
    """Batches (problem, batch, …) of a variable."""
    return np.stack([data[name].values for _, data in sorted(results.estimates.items())])


def effects(results: Results) -> Mapping[str, Effects]:
    """Effects by name, positive where the claim holds."""
    law = results.predictions["law"]
    error, half = law["error"].values, law["levels"].values // 2
    sampled, block, mse = (simulated(results, name) for name in ("error", "remainder", "mse"))

    def of(values: np.ndarray, function) -> np.ndarray:  # type: ignore[no-untyped-def]
        """Pseudo-values (problem, batch) of a function of means."""
        return np.stack([jackknife({"": each}, lambda mean: function(mean[""])) for each in values])

    decay = [
        jackknife({"": each[:, LEVELS, :k]}, lambda mean: straightness(mean[""]))
        for each, k in zip(sampled, half, strict=False)
    ]
    theory = [straightness(each[LEVELS, :k]) for each, k in zip(error, half, strict=True)]
    last = np.arange(len(half))
    predicted, here = (
        error[last, :, half - 1],
        sampled[last[: len(sampled)], :, :, half[: len(sampled)] - 1],
    )
    silent = np.full((len(sampled), 2), np.nan)
    arms, known = law["mse"].values, law["in_range"].values.astype(bool)
    return {
        "decay": of_batches(np.stack(decay), predicted=np.array(theory)),
        "parts": gap(here[..., BOTH], predicted[:, LEVELS] + predicted[:, RANK]),
        "roads": of_batches(
            here[..., BOTH] / predicted[: len(sampled), BOTH, None] - 1, kind="estimate"
        ),
        "correction": of_batches(of(block, lambda e: 1 - e[..., FOURTH] / e[..., GAUSSIAN])),
        "third cumulant": of_batches(of(block, lambda e: 1 - e[..., THIRD] / e[..., GAUSSIAN])),
        "definite": of_batches(silent, kind="estimate", predicted=law["definite"].values),
        "one bandwidth": of_batches(
            of(mse, lambda e: e[..., OUTPUTS] / e[..., SINGLE] - 1),
            predicted=arms[:, OUTPUTS] / arms[:, SINGLE] - 1,
            valid=known,
        ),
        "ensemble": of_batches(
            of(mse, lambda e: e[..., SCORES] / e[..., OUTPUTS] - 1),
            predicted=arms[:, SCORES] / arms[:, OUTPUTS] - 1,
            valid=known,
        ),
    }


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a problem; ``narrow`` is 1 where heads are narrower than tokens."""
    law = results.predictions["law"].drop_vars(["taps", "order", "shares", "queries"])
    columns = {k: v.values for k, v in law.data_vars.items() if v.dims == ("number",)}
    narrow = (law["head_width"] < law["width"]).values.astype(float)
    return pd.DataFrame(columns).drop(columns=["definite", "in_range"]).assign(narrow=narrow)
