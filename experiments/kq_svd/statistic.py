"""Gains of KQ-SVD over its rivals, and cost of calibration."""

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import falls
from sims.judgement.effects import Effects, gap, mean, outcome_over_pairs, share
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

KQ, K, EIGEN = range(3)
"""Indices of the compressions of keys as they are along the axis ``method``."""
CENTRED = 3
"""Index of KQ-SVD of centred keys; its rivals follow in the same order."""


def effects(results: Results) -> dict[str, Effects]:
    """Falls of errors from each rival to KQ-SVD, ratios to the bound, and gaps to theory."""
    law = results.law
    score = stack_batches(results, "score")
    output = stack_batches(results, "output")
    bound = stack_batches(results, "bound")
    saved = 1 - law["least"] / law["keys_only"]
    return {
        "scores": _order(falls(score, [KQ], [K])),
        "scores, centred": _order(falls(score, [CENTRED], [CENTRED + K])),
        "outputs": _order(falls(output, [KQ], [K, EIGEN])),
        "outputs, centred": _order(falls(output, [CENTRED], [CENTRED + K, CENTRED + EIGEN])),
        "centring": _order(falls(output, [CENTRED], [KQ])),
        "bound": share(1 - bound, size=bound.mean(1) - 1),
        "saved": mean(None, predicted=saved),
        "calibration": gap(score[..., KQ], law["least"] * (1 + law["cost"])),
    }


def _order(draws: np.ndarray) -> Effects:
    """Outcomes over all rivals; size is the relative rise over the better one's error."""
    return outcome_over_pairs(draws, size=-draws.mean(1).min(1))


def panels(results: Results) -> xr.Dataset:
    """Errors of each simulated problem over what they are compared with.

    ``output`` of KQ-SVD over the better rival's, with keys as they are and centred in all methods,
    and ``score`` of each method over the least one of keys as they are.
    """
    output = stack_batches(results, "output").mean(1).reshape(-1, 2, CENTRED)
    score = stack_batches(results, "score").mean(1)
    return xr.Dataset(
        {
            "output": (("problem", "shown"), output[..., KQ] / output[..., K:].min(-1)),
            "score": (("problem", "method"), score / results.law["least"][: len(score), None]),
        }
    )


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values and numbers by theory that questions refer to, one row per problem."""
    return drawn_values(results, "axes", "least", "keys_only")
