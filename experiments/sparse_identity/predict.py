"""What theory says: how often ReLU leaves a row empty. Elsewhere it says that gaps are 0."""

import xarray as xr

from sims.study.experiment import Experiment


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """``(1 − h²/4)^n``, under the names of those points alone.

    On the unit sphere of R³ the height ⟨q, k⟩ of a uniform key is uniform on [−1, 1], and a key is
    within h of q if it is above ``1 − h²/2``: with probability h²/4.
    """
    empty = experiment.settings["empty"]
    return {
        f"empty h²={square}": xr.Dataset({"empty": (1 - square / 4) ** empty["n"]})
        for square in empty["radius_squared"]
    }
