"""Over random frames: the correlation of index and error, with its own errors taken out."""

from collections.abc import Mapping

import numpy as np

from sims.diversity import DEFINITIONS
from sims.effects import Effect, of_batches
from sims.estimates import jackknife
from sims.study.results import Results

from .quantities import CONTINUOUS
from .regimes import DRAWN


def over_drawn_frames(results: Results, regime: str) -> list[Effect]:
    """Of every index of subspaces an effect: minus its correlation with the error over frames.

    Args:
        results: of the experiment.
        regime: one whose frames are drawn, several sets of heads a batch.
    """
    name = DRAWN.format(regime)
    data = results.estimates[name]
    moments = within_batches(data["frames_error"].values, data["frames_gram"].values)
    values = jackknife(moments, fall)
    return [
        of_batches(f"{regime}, {definition}, geometric", values[:, place], name)
        for place, definition in enumerate(CONTINUOUS)
    ]


def within_batches(errors: np.ndarray, gram: np.ndarray) -> dict[str, np.ndarray]:
    """Variances and covariances over the sets of heads of each batch.

    An index of subspaces is known without error. Errors are relative to their mean in the batch,
    so that every batch counts alike; the product of their two halves, with draws of their own,
    estimates their variance over frames without that of the draws.

    Args:
        errors: of the ensemble, (B, half, C).
        gram: mean squared cosines of the heads, (B, C, H, H).

    Returns:
        ``index`` (B, k), ``error`` (B, 1) and ``both`` (B, k), for the k indices.
    """
    index = np.stack([DEFINITIONS[definition](gram) for definition in CONTINUOUS], axis=1)
    index -= index.mean(-1, keepdims=True)
    y = errors / errors.mean((-2, -1), keepdims=True)
    y -= y.mean(-1, keepdims=True)
    return {
        "index": np.mean(index**2, axis=-1),
        "error": np.mean(y[:, 0] * y[:, 1], axis=-1)[:, None],
        "both": np.mean(index * y.mean(1)[:, None], axis=-1),
    }


def fall(means: Mapping[str, np.ndarray]) -> np.ndarray:
    """Minus Pearson's correlation within batches, (…, k); NaN where errors have no variance."""
    with np.errstate(invalid="ignore"):
        return np.asarray(-means["both"] / np.sqrt(means["index"] * means["error"]))
