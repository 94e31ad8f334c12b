"""Shards: a simulation cut into parts of about equal work, for as many jobs.

The points are laid out on a line, those of one compile shape beside one another, each as long as
its batches take; shard i of N is the i-th of N equal stretches. So a shard has whole points but for
the first and the last, of which it has a range of batches, and few programs to compile. What a
point draws once, a pilot, each of its shards draws again: the same numbers.

Shards keep their batches beside the file of the run (:mod:`sims.study.shelf`), which then finds
them there: gathering is the run itself, and its numbers are those of a run without shards, whatever
finished in which order.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sims.errors import InputError
from sims.study.code import MOST_SHARDS
from sims.study.experiment import Experiment
from sims.study.units import Unit


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts, ``index`` from 1.

    Raises:
        InputError: there is no such part.
    """

    index: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.index <= self.count <= MOST_SHARDS:
            allowed = f"i/N, i from 1 to N, N at most {MOST_SHARDS}"
            raise InputError("shard", str(self), allowed)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The shard that ``2/7`` names.

        Raises:
            InputError: it names none.
        """
        if not re.fullmatch(r"[0-9]{1,5}/[0-9]{1,5}", text):
            raise InputError("shard", text, f"i/N, i from 1 to N, N at most {MOST_SHARDS}")
        index, count = map(int, text.split("/"))
        return cls(index, count)


@dataclass(frozen=True)
class Load:
    """What a point takes.

    Attributes:
        batches: those that are to be computed.
        shape: what its compiled program depends on.
        work: of a batch, in any unit.
    """

    batches: range
    shape: object = None
    work: float = 1.0


def loads(experiment: Experiment, units: Mapping[str, Unit]) -> dict[str, Load]:
    """What every point of an experiment takes; those of its own code count alike.

    Populations are left out: the run that gathers computes them.
    """
    from sims.study.planning import costs

    batches = range(experiment.simulation.batches)
    found = costs(experiment, ["simulation"])
    if not found:
        return {name: Load(batches, name) for name in units}
    return {
        point.name: Load(batches, cost.shape, cost.work / len(batches))
        for point, cost in zip(experiment.points, found, strict=True)
        if point.population is None
    }


def assigned(points: Mapping[str, Load], shard: Shard) -> dict[str, range]:
    """The batches of each point that a shard computes; points of which it has none are left out.

    Args:
        points: name to what it takes.
        shard: which part.
    """
    shapes = list(dict.fromkeys(load.shape for load in points.values()))
    line = sorted(points, key=lambda name: shapes.index(points[name].shape))
    whole = math.fsum(load.work * len(load.batches) for load in points.values())
    ends = [whole * end / shard.count for end in (shard.index - 1, shard.index)]
    if shard.index == shard.count:
        ends[1] = math.inf  # however the sum was rounded
    parts, begin = {}, 0.0
    for name in line:
        load = points[name]
        low, high = (_cut(load, end - begin) for end in ends)
        if low < high:
            parts[name] = range(low, high)
        begin += load.work * len(load.batches)
    return parts


def _cut(load: Load, along: float) -> int:
    """The first batch beyond a place of the line, counted from where the point's stretch begins."""
    return load.batches.start + round(min(max(along / load.work, 0.0), len(load.batches)))
