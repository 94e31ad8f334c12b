"""The angle law of sparse attention: one number a problem."""

import numpy as np
import pandas as pd

from sims.base.estimates import jackknife
from sims.judgement.effects import Effects, gap, share
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

SHOWN = ("rule", "width", "keys", "reach", "first", "n_eff", "selectivity", "in_range")
PAIR = ("pair_kernel", "pair_width", "pair_keys", "pair_attended")


def correlations(results: Results) -> np.ndarray:
    """Batches of the noise correlation with the first head, (N, B, angle)."""
    pair = stack_batches(results, "pair").swapaxes(0, 1)
    alone = stack_batches(results, "own").T[..., None]
    parts = {"pair": pair, "own": alone}
    return jackknife(parts, lambda terms: terms["pair"] / terms["own"]).swapaxes(0, 1)


def effects(results: Results) -> dict[str, Effects]:
    """Rises as angles halve, and gaps of one less the correlation to the laws and to a product."""
    law = results.law
    simulated = correlations(results)
    apart = 1 - simulated[..., 0]
    series = law["correlation"]
    product = law["product"] * series / (1 - series)
    return {
        "rise": share(simulated[..., 1] - simulated[..., 0]),
        "one curve": gap(apart, 1 - law["gaussian"]),
        "product": Effects(product, np.zeros(len(product)), "gap"),
        "series": gap(apart, 1 - series, law["in_range"].astype(bool)),
        "reach": Effects(law["pair_gap"], law["pair_error"], "gap"),
    }


def parameters(results: Results) -> pd.DataFrame:
    """Drawn values, n_eff, and accuracy of the series, one row per problem."""
    frame = drawn_values(results)
    return frame[[*SHOWN, *PAIR]].assign(
        accurate=np.isfinite(frame["correlation"]),
        sparse=(frame["rule"] != "gaussian").astype(float),
    )
