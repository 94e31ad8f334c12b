"""The angle law of sparse attention: one number a problem."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sims.base.estimates import jackknife
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap, of_batches
from sims.study.results import Results

SHOWN = ("rule", "width", "keys", "reach", "first", "n_eff", "in_range")


def correlations(results: Results) -> np.ndarray:
    """Batches of the noise correlation with the first head, (N, B, angle)."""
    every = [data for _, data in sorted(results.estimates.items())]
    pair, alone = (np.stack([data[name].values for data in every], 1) for name in ("pair", "own"))
    parts = {"pair": pair, "own": alone[..., None]}
    return np.moveaxis(jackknife(parts, lambda terms: terms["pair"] / terms["own"]), 1, 0)


def effects(results: Results) -> Mapping[str, Effects]:
    """Rises as angles halve, and gaps to the gaussian law, to a product and to the series."""
    law, simulated = results.predictions["law"], correlations(results)
    theory, product = law["correlation"].values, law["product"].values
    apart, exact = theory / law["gaussian"].values - 1, np.zeros(len(theory))
    return {
        "rise": of_batches(simulated[..., 1] - simulated[..., 0]),
        "one curve": Effects(apart, exact, "gap"),
        "product": Effects(product, exact, "gap"),
        "series": gap(simulated[..., 0], theory, law["in_range"].values.astype(bool)),
    }


def parameters(results: Results) -> pd.DataFrame:
    """What was drawn, n_eff, and whether the series is accurate, a row a problem."""
    law = results.predictions["law"]
    columns = {name: law[name].values for name in SHOWN}
    return pd.DataFrame(columns | {"accurate": np.isfinite(law["correlation"].values)})
