"""The simulation of an experiment, point by point, from what is kept of it and what is computed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import xarray as xr

from sims.errors import InputError
from sims.montecarlo import store
from sims.study.experiment import Experiment
from sims.study.planning import named
from sims.study.results import Coordinates, Results, read
from sims.study.shelf import Shelf
from sims.study.stacking import unstack
from sims.study.units import Unit, units_of


@dataclass(frozen=True)
class Simulation:
    """One experiment's points.

    Attributes:
        experiment: which one.
        output: the file that they are written to; what is unfinished lies beside it.
        progress: whether to show progress on stderr.
        closed: whether nothing is computed.
    """

    experiment: Experiment
    output: Path
    progress: bool = False
    closed: bool = False

    @cached_property
    def units(self) -> Mapping[str, Unit]:
        """The units of the simulation, by the name of their point."""
        return units_of(self.experiment)

    @cached_property
    def shelf(self) -> Shelf:
        """Where the points lie."""
        return Shelf.of(self.experiment, self.output)

    @cached_property
    def coordinates(self) -> Coordinates:
        """The points' coordinates."""
        return {name: dict(unit.coordinates) for name, unit in self.units.items()}

    def begun(self, name: str) -> xr.Dataset:
        """A point with the batches that every point gets."""
        path = self.shelf.finished(self.units[name])
        kept = store.load(path)
        if kept is None:
            kept = self._extended(name, None, None)
            store.save(kept, path)
        return kept

    def longest(self, name: str, begun: xr.Dataset) -> xr.Dataset:
        """The point with all batches that an earlier run gave it."""
        return store.load(self.shelf.longer(self.units[name])) or begun

    def longer(self, name: str, data: xr.Dataset, batches: int) -> xr.Dataset:
        """The point with that many batches in all."""
        more = self._extended(name, data, batches)
        store.save(more, self.shelf.longer(self.units[name]))
        return more

    def part(self, name: str, part: range) -> None:
        """Compute some batches of a point, and keep them."""
        have = store.load(self.shelf.longer(self.units[name]))
        have = have or store.load(self.shelf.finished(self.units[name]))
        if have is not None and have.attrs["batches"] >= part.stop:
            return
        with named(name, self.units[name].coordinates):
            kept = self.shelf.batches(self.units[name], part)
            self.units[name].estimate(self.experiment.simulation, None, self.progress, kept)

    def results(self, estimates: Mapping[str, xr.Dataset], theory: Path | None) -> Results:
        """Both roads as far as they are, for the claims to be looked at.

        Raises:
            InputError: there is no file of predictions.
        """
        if theory is None:
            raise InputError("theory", None, "the predictions' file: sampling is adaptive")
        whose = self.experiment.identity
        return Results(
            self.experiment.name,
            self.experiment.fidelity,
            estimates,
            unstack(read(theory, f"theory.nc of {whose}")),
            self.experiment.settings,
            self.coordinates,
            self.experiment.problems_by_name,
            {},
        )

    def _extended(self, name: str, data: xr.Dataset | None, batches: int | None) -> xr.Dataset:
        settings = self.experiment.simulation
        if batches is not None:
            settings = settings.model_copy(update={"batches": batches})
        with named(name, self.units[name].coordinates):
            kept = self.shelf.batches(self.units[name], closed=self.closed)
            more = self.units[name].estimate(settings, data, self.progress, kept)
        return more if data is None else more.assign_attrs(contract=data.attrs["contract"])
