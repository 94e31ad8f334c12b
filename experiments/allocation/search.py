"""Any regime of the law by theory, for a search, and as a file."""

from typing import Any

import xarray as xr

from sims.study.experiment import Experiment

from .predict import predicted
from .problems import Drawn, described, regime


def theory(experiment: Experiment, fields: Drawn) -> xr.Dataset:
    """A regime of these fields as ``predict`` has it."""
    return predicted(regime(fields))


def problem(experiment: Experiment, fields: Drawn) -> dict[str, Any]:
    """The same as a file that ``sims sweep`` reads."""
    return described(regime(fields), [experiment.simulation.seed])
