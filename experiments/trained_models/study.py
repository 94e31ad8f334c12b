"""Overlaps of trained heads, and the layer's loss without them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import xarray as xr

from sims.study.modular import ModularStudy, from_module
from sims.study.referenced_files import MissingModels, checkpoint

if TYPE_CHECKING:
    from sims.study.units import SampledUnit


class TrainedModels(ModularStudy[str]):
    """Costs of merging and pruning heads, and their attention maps; a unit per model."""

    panels = from_module("statistic")
    numbers = from_module("figure")

    @property
    def models(self) -> Mapping[str, Mapping[str, Any]]:
        """Name of each model to its row."""
        return self.spec.law["checkpoints"]

    def is_stored(self, name: str) -> bool:
        """Whether a model's table stands for it: it is not to be measured, or not installed."""
        row = self.models[name]
        if "table" not in row:
            return False
        try:
            checkpoint(row["file"])
        except MissingModels:
            return True
        return not self.settings["measured"]

    def units(self) -> "dict[str, SampledUnit]":
        from sims.montecarlo import HostBatches
        from sims.study.units import SampledUnit

        from .problems import TOKENS
        from .simulate import DIMS, measure_batch
        from .table import digest, stored_batch

        units = {}
        for place, (name, row) in enumerate(self.models.items()):
            constants: dict[str, Any] = {"law": self.spec.law, "name": name}
            batch = measure_batch
            if self.is_stored(name):
                batch = stored_batch
                constants = {"name": name, "file": row["table"], "digest": digest(row["table"])}
            coords = {"tokens": list(TOKENS)}
            sampler = HostBatches(batch, constants=constants, dims=DIMS, coords=coords)
            large = row["layout"] == "decoder"
            units[name] = SampledUnit(sampler, {"model": name}, stream=(place,), large=large)
        return units

    def predictions(self) -> dict[str, xr.Dataset]:
        from .predict import overlaps_of
        from .table import load

        found = {}
        for name, row in self.models.items():
            if self.is_stored(name):
                found[name] = load(name, row["table"]).drop_dims("batch")
            else:
                found[name] = overlaps_of(self.spec.law, name)
        return found

    def predicted_coordinates(self) -> Mapping[str, Mapping[str, str]]:
        return {name: {"model": name} for name in self.models}

    def problem_digests(self) -> dict[str, str]:
        """Digests of models or of their tables, with the text that a model reads."""
        from .problems import made_of
        from .table import digest

        found = {}
        for name, row in self.models.items():
            stored = self.is_stored(name)
            found[name] = digest(row["table"]) if stored else made_of(self.spec.law, name)
        return found
