"""Layers trained together, head by head, and with identical heads."""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from sims.base.identity import rounded_digest
from sims.study.modular import ModularStudy, from_module
from sims.study.panels import Panels

from .problems import draw_problem

if TYPE_CHECKING:
    from sims.study.units import SampledUnit


class Training(ModularStudy[dict[str, Any]]):
    """Errors of trained layers on new tasks; a unit per size, a batch per problem."""

    panels = from_module("statistic")

    @cached_property
    def law(self) -> Mapping[str, Any]:
        """Fields of the law and how each is drawn; sizes are not, they take turns."""
        return {name: how for name, how in super().law.items() if name != "sizes"}

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Heads H and width d_k of each size."""
        return self.spec.law["sizes"]

    def problems_of_size(self, place: int) -> list[dict[str, Any]]:
        """Problems of one size, in the order of their batches."""
        batches = range(self.simulation.batches)
        return [self.draw(len(self.sizes) * batch + place) for batch in batches]

    def draw(self, number: int) -> dict[str, Any]:
        return draw_problem(self.law, self.sizes, self.simulation.seed, number)

    def units(self) -> "dict[str, SampledUnit]":
        from sims.montecarlo import Replicates
        from sims.study.units import SampledUnit

        from .simulate import LAYERS, MEASURED, draw_task, train_and_measure

        settings = self.settings
        units = {}
        for place, (heads, width) in enumerate(self.sizes):
            replicate = partial(
                train_and_measure,
                heads=heads,
                width=width,
                n=self.law["keys"],
                dimension=self.law["dimension"],
                outputs=self.law["responses"],
                training=tuple(settings["training"].items()),
                held_out=tuple(settings["held_out"].items()),
            )
            sampler = Replicates(
                replicate,
                per_batch=partial(draw_task, law=self.law, sizes=self.sizes, place=place),
                reduce="stack",
                dims=dict.fromkeys(MEASURED, ("layer",)),
                coords={"layer": list(LAYERS)},
            )
            point = {"heads": heads, "width": width}
            units[f"{heads} of {width}"] = SampledUnit(sampler, point, stream=(place,))
        return units

    def predictions(self) -> dict[str, xr.Dataset]:
        """What the law drew: there is no theory of what training finds."""
        rows = []
        for place in range(len(self.sizes)):
            rows += self.problems_of_size(place)
        table = pd.DataFrame(rows).rename_axis("number")
        return {"law": table.to_xarray().drop_vars("number")}

    def problem_digests(self) -> dict[str, str]:
        places = range(len(self.sizes))
        return {str(place): rounded_digest(self.problems_of_size(place)) for place in places}

    def numbers(self, panels: Panels) -> Mapping[str, Any]:
        from .statistic import LEAST_SKILL, changes_table

        seeds = self.simulation.replicates_per_batch
        unskilled = int((panels.parameters["skill"] < LEAST_SKILL).sum())
        return {"changes": changes_table(panels), "seeds": seeds, "unskilled": unskilled}
