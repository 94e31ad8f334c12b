"""Overlaps of trained heads, and the layer's loss without them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import xarray as xr

from sims.study.modular import ModularStudy, from_module
from sims.study.referenced_files import checkpoint, digest_of

if TYPE_CHECKING:
    from sims.study.units import SampledUnit


class TrainedModels(ModularStudy[str]):
    """Costs of merging and pruning heads, and their attention maps; a unit per model."""

    panels = from_module("statistic")
    numbers = from_module("figure")

    @property
    def models(self) -> Mapping[str, str]:
        """Name of each model to its file."""
        return self.spec.law["checkpoints"]

    def units(self) -> "dict[str, SampledUnit]":
        from sims.montecarlo import HostBatches
        from sims.study.units import SampledUnit

        from .problems import TOKENS
        from .simulate import DIMS, measure_batch

        law = self.spec.law
        units = {}
        for place, name in enumerate(self.models):
            sampler = HostBatches(
                measure_batch,
                constants={"law": law, "name": name},
                dims=DIMS,
                coords={"tokens": list(TOKENS)},
            )
            units[name] = SampledUnit(sampler, {"model": name}, stream=(place,))
        return units

    def predictions(self) -> dict[str, xr.Dataset]:
        from .predict import overlaps_of

        return {name: overlaps_of(self.spec.law, name) for name in self.models}

    def predicted_coordinates(self) -> Mapping[str, Mapping[str, str]]:
        return {name: {"model": name} for name in self.models}

    def problem_digests(self) -> dict[str, str]:
        return {name: digest_of(checkpoint(file)) for name, file in self.models.items()}
