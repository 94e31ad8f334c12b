"""What the law drew: of what training finds there is no theory here."""

import pandas as pd
import xarray as xr

from sims.study.experiment import Experiment

from .problems import drawn


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """All problems in one point, ``law``: those of the first size, then of the next."""
    law, run = experiment.spec.law or {}, experiment.simulation
    count = len(law["sizes"])
    numbers = [count * batch + place for place in range(count) for batch in range(run.batches)]
    rows = pd.DataFrame([drawn(law, run.seed, number) for number in numbers])
    return {"law": xr.Dataset({str(name): ("number", rows[name]) for name in rows})}
