"""Stacks with hidden scores next to plain ones."""

import xarray as xr

from sims.study.modular import ModularStudy
from sims.study.problem import Drawn


class HiddenScores(ModularStudy[Drawn]):
    """Collapse and uniformity with a memory of scores and without."""

    problem = staticmethod(Drawn)

    def theory(self, problem: Drawn) -> xr.Dataset:
        """What was drawn: there is no theory of a whole stack."""
        return xr.Dataset(problem.drawn)
