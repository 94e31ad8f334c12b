"""Overlaps of trained heads, and the layer's loss without them."""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import xarray as xr

from sims.study.modular import ModularStudy, from_module
from sims.study.referenced_files import MissingModels, checkpoint, digest_of

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

    def table(self, name: str) -> xr.Dataset | None:
        """A model's table, if it is not to be measured, or is not installed."""
        from .table import load

        row = self.models[name]
        if "table" not in row:
            return None
        with suppress(MissingModels):
            if checkpoint(row["file"]) and self.settings["measured"]:
                return None
        return load(name, row["table"])

    def units(self) -> "dict[str, SampledUnit]":
        from sims.montecarlo import HostBatches
        from sims.study.units import SampledUnit

        from .problems import TOKENS
        from .simulate import DIMS, measure_batch
        from .table import stored_batch

        units = {}
        for place, (name, row) in enumerate(self.models.items()):
            options: dict[str, Any] = {"dims": DIMS, "coords": {"tokens": list(TOKENS)}}
            table = self.table(name)
            if table is None:
                constants = {"law": self.spec.law, "name": name}
                sampler = HostBatches(measure_batch, constants=constants, **options)
            else:
                stored = {each: table[each].values for each in DIMS}
                sampler = HostBatches(stored_batch, constants=stored, **options)
            large = row["layout"] == "decoder"
            units[name] = SampledUnit(sampler, {"model": name}, stream=(place,), large=large)
        return units

    def predictions(self) -> dict[str, xr.Dataset]:
        from .predict import overlaps_of

        found = {}
        for name in self.models:
            table = self.table(name)
            known = overlaps_of(self.spec.law, name) if table is None else table.drop_dims("batch")
            found[name] = known
        return found

    def predicted_coordinates(self) -> Mapping[str, Mapping[str, str]]:
        return {name: {"model": name} for name in self.models}

    def problem_digests(self) -> dict[str, str]:
        """Digests of models, with those of the texts that they read, or of tables."""
        from .problems import made_of
        from .table import path_of

        found = {}
        for name, row in self.models.items():
            is_measured = self.table(name) is None
            found[name] = (
                made_of(self.spec.law, name) if is_measured else digest_of(path_of(row["table"]))
            )
        return found
