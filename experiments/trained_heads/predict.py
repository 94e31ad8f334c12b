"""What theory says of random heads before they are trained."""

import xarray as xr

from sims.study.experiment import Experiment


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """The subspaces' index expected at a random start, ``1 − d_k/d``, by the units' names.

    Random subspaces have projections of mean ``(d_k/d) I``, so that ``E ‖UᵀV‖²_F/d_k = d_k/d``.
    """
    settings = experiment.settings
    return {
        f"{stream}, {heads} of {width}{objective}": xr.Dataset(
            {"subspaces_start": 1 - width / settings["dimension"]}
        )
        for objective, sizes in (("", settings["sizes"]), (", separate", settings["separate"]))
        for heads, width in sizes
        for stream in settings["streams"]
    }
