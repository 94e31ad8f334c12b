"""Panels: what figures and captions show of a run, in two files next to its results. No JAX."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.judgement.effects import Effects
from sims.judgement.table import Table

TABLE = "effects.nc"
"""File of the table of effects."""
PANELS = "panels.nc"
"""File of the arrays."""


@dataclass(frozen=True, eq=False)
class Panels:
    """The table of effects, and arrays that a study took from its results.

    Attributes:
        table: the table.
        arrays: what the study's method ``panels`` returned.
        failures: number of a problem that fails, as text, to its description.
    """

    table: Table
    arrays: xr.Dataset
    failures: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        """Values of an array."""
        return self.arrays[name].values

    @property
    def effects(self) -> Mapping[str, Effects]:
        """Effects that questions name, by name."""
        return self.table.effects

    @property
    def parameters(self) -> pd.DataFrame:
        """Drawn parameters, a row per problem, the simulated ones first."""
        return self.table.parameters
