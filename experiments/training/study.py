"""Layers trained together, each head by itself, and with identical heads."""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from sims.base.identity import rounded_digest
from sims.study.results import Results
from sims.study.study import Study

from .problems import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sims.judgement.answers import Answer
    from sims.judgement.effects import Effects
    from sims.study.units import SampledUnit


class Training(Study[dict[str, Any]]):
    """Errors of trained layers on new tasks; a unit per size, a batch per problem."""

    @cached_property
    def law(self) -> Mapping[str, Any]:
        """Fields of the law and how each is drawn; sizes are not, they take turns."""
        return {name: how for name, how in super().law.items() if name != "sizes"}

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Heads H and width d_k of each size."""
        return [(heads, width) for heads, width in self.experiment.spec.law["sizes"]]

    @property
    def numbers_by_size(self) -> list[list[int]]:
        """Numbers of the problems of each size."""
        count, batches = len(self.sizes), self.experiment.simulation.batches
        return [[count * batch + place for batch in range(batches)] for place in range(count)]

    def draw(self, number: int) -> dict[str, Any]:
        return drawn(self.law, self.sizes, self.experiment.simulation.seed, number)

    def units(self) -> "dict[str, SampledUnit]":
        from sims.montecarlo import Replicates
        from sims.study.units import SampledUnit

        from .simulate import LAYERS, MEASURED, of_seed, task_of

        law, settings, units = self.law, self.experiment.settings, {}
        for place, (heads, width) in enumerate(self.sizes):
            sizes = {"heads": heads, "width": width, "n": law["keys"]}
            replicate = partial(
                of_seed,
                **sizes,
                dimension=law["dimension"],
                outputs=law["responses"],
                training=tuple(settings["training"].items()),
                held_out=tuple(settings["held_out"].items()),
            )
            sampler = Replicates(
                replicate,
                per_batch=partial(task_of, law=law, sizes=self.sizes, place=place),
                reduce="stack",
                dims=dict.fromkeys(MEASURED, ("layer",)),
                coords={"layer": list(LAYERS)},
            )
            point = {"heads": heads, "width": width}
            units[f"{heads} of {width}"] = SampledUnit(sampler, point, stream=(place,))
        return units

    def predictions(self) -> dict[str, xr.Dataset]:
        """What the law drew: there is no theory of what training finds."""
        rows = pd.DataFrame([self.draw(k) for numbers in self.numbers_by_size for k in numbers])
        return {"law": xr.Dataset({str(name): ("number", rows[name]) for name in rows})}

    def problem_digests(self) -> dict[str, str]:
        return {
            str(place): rounded_digest([self.draw(number) for number in numbers])
            for place, numbers in enumerate(self.numbers_by_size)
        }

    def effects(self, results: Results) -> Mapping[str, "Effects"]:
        from .statistic import effects

        return effects(results)

    def parameters(self, results: Results) -> pd.DataFrame:
        from .statistic import parameters

        return parameters(results)

    def figure(self, results: Results, answers: "list[Answer]") -> "Figure":
        from .figure import figure

        return figure(results, answers)
