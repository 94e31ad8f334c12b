"""The angle law of sparse attention: one number a problem."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.estimates import jackknife
from sims.judgement.answers import Effects
from sims.judgement.effects_of_problems import gap, of_batches
from sims.study.results import Results

SHOWN = ("rule", "width", "keys", "reach", "first", "n_eff", "in_range")


def effects(results: Results) -> Mapping[str, Effects]:
    """Gaps of correlations to the series, the gaussian curve and a product; rises."""
    law, every = results.predictions["law"], [d for _, d in sorted(results.estimates.items())]
    pair, own = (np.stack([d[name].values for d in every], 1) for name in ("pair", "own"))
    found = jackknife({"pair": pair, "own": own[..., None]}, lambda t: t["pair"] / t["own"])
    simulated, theory = np.moveaxis(found, 1, 0), law["correlation"].values
    apart, product = theory / law["gaussian"].values - 1, law["product"].values
    return {
        "rise": of_batches(simulated[..., 1] - simulated[..., 0]),
        "one curve": Effects(apart, np.zeros(len(apart)), "gap"),
        "product": Effects(product, np.zeros(len(apart)), "gap"),
        "series": gap(simulated[..., 0], theory, law["in_range"].values.astype(bool)),
    }


def parameters(results: Results) -> pd.DataFrame:
    """What was drawn, and the effective number of keys, a row a problem."""
    law = results.predictions["law"]
    return pd.DataFrame({name: law[name].values for name in SHOWN})
