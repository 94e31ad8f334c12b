"""Many problems of one shape through one compiled program.

A call for each would cost a hundred times as much as the work of a small one.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, PyTree
from numpy.typing import ArrayLike

from sims.base import threefry
from sims.base.errors import located
from sims.base.terms import PROBLEM
from sims.montecarlo import Draw, Rounds, Sampling, run
from sims.montecarlo.compiled import Program, by_value, run_batches
from sims.montecarlo.draws import wrap_key
from sims.montecarlo.sampler import BATCH, Arrays
from sims.problem import Heads, Task
from sims.simulation.draws import split_constant
from sims.simulation.engine import sampler_of
from sims.simulation.ensemble import EnsembleSampler, join_groups
from sims.simulation.moments import BATCH_ESTIMATES
from sims.simulation.replicate import Shared
from sims.simulation.result import batch_arrays, build, describe_run
from sims.simulation.rounding import Shares


@dataclass(frozen=True)
class EachProblem:
    """A program of one batch, mapped over the problems that ``shared`` and the keys lead with."""

    program: Program

    def __call__(self, shared: PyTree, batch: PyTree, keys: Array) -> dict[str, Array]:
        """Outputs (P, …) of one batch of every problem, from random keys (P, R)."""
        return lax.map(lambda pair: self.program(pair[0], batch, pair[1]), (shared, keys))


@dataclass(frozen=True, eq=False)
class ProblemsSampler:
    """Batches of P problems of one shape; the p-th draws with ``streams[p]`` folded into the seed.

    What it labels has the dimensions of :mod:`sims.base.terms` with ``problem`` after ``batch``.
    """

    members: Sequence[EnsembleSampler]
    streams: Sequence[tuple[int, ...]]

    def identity(self) -> object:
        """Those of the problems."""
        return [member.identity() for member in self.members], list(self.streams)

    def start(self, draws: Draw, devices: Sequence[jax.Device], batches: int) -> Rounds:
        """Set up a run of problems that agree in what selects a compilation."""
        words = np.stack([_fold_stream(draws.words, stream) for stream in self.streams])
        parts = []
        for member, of_member in zip(self.members, words, strict=True):
            parts.append(member.prepare(replace(draws, words=of_member), devices, batches))
        function, at_once, _, attrs = parts[0]
        first = self.members[0]
        mesh = Mesh(np.array(devices), ("batch",))
        program = EachProblem(Program(by_value(function), BATCH_ESTIMATES, False, at_once))
        groups = list(map(_stack, zip(*map(operator.itemgetter(2), parts), strict=True)))

        def begin(number: int) -> Callable[[], Arrays]:
            numbers = np.arange(number, number + mesh.size, dtype=np.uint32)[:, None]
            of_batch = threefry.fold_in(words, numbers)[:, :, None]
            keys = wrap_key(threefry.fold_in(of_batch, np.arange(draws.replicates)))
            values = [run_batches(program, known, None, keys, mesh=mesh) for known in groups]
            count = len(first.queries)
            return lambda: join_groups(
                jax.tree.map(np.asarray, values), count, first.keep_queries, 2
            )

        return Rounds(begin, mesh.size, attrs)

    def label(self, arrays: Arrays) -> xr.Dataset:
        """The terms, without MCSE."""
        return build(arrays, keep_queries=self.members[0].keep_queries)

    def unlabel(self, data: xr.Dataset) -> Arrays:
        """The arrays of a result."""
        return batch_arrays(data)

    def precise(self, arrays: Arrays, rel_mcse: float, negligible: float) -> bool:
        """False: with many problems, every problem gets the same number of batches."""
        return False


def averages_sampler(
    problems: Sequence[tuple[Task, Heads, int, ArrayLike]],
    streams: Sequence[tuple[int, ...]],
    precision: str,
) -> ProblemsSampler:
    """Sampler of problems of one shape that keeps averages over queries alone.

    Arguments are as of :func:`estimate_many`.
    """
    options = {"precision": precision, "keep_queries": False}
    samplers, _ = zip(*_samplers(problems, options), strict=True)
    return ProblemsSampler(samplers, streams)


def estimate_many(
    problems: Sequence[tuple[Task, Heads, int, ArrayLike]],
    seed: int,
    streams: Sequence[tuple[int, ...]] | None = None,
    *,
    precision: str = "float32",
    control_variate: bool = False,
    keep_queries: bool = True,
    **sampling: Unpack[Sampling],
) -> xr.Dataset:
    """Estimates of many problems, as of :func:`~.engine.estimate` each, in one dataset.

    Problems that differ in numbers alone (frames, bandwidths, target, noise, queries) share a
    compiled program and a call of it; sort them so that few shapes occur. Of several problems all
    get as many batches.

    Args:
        problems: (task, heads, n, queries) each, of equal H and Q.
        seed: random seed for all.
        streams: numbers folded into the seed, for each problem; None gives all the same draws.
        precision: as of :func:`~.engine.estimate`, like all that follow.
        control_variate: as there.
        keep_queries: as there.
        sampling: as there.

    Returns:
        Its variables with ``problem`` after ``batch``; and along ``problem`` ``rounding``,
        ``faults`` and ``cautions`` (text, empty if there is nothing to say). Attributes are those
        of the run.

    Raises:
        InputError: a problem cannot be simulated; the line names its place.
    """
    streams = [()] * len(problems) if streams is None else streams
    options: dict[str, Any] = {
        "precision": precision,
        "control_variate": control_variate,
        "keep_queries": keep_queries,
    }
    samplers, shares = zip(*_samplers(problems, options), strict=True)
    classes: dict[object, list[int]] = {}
    for place, sampler in enumerate(samplers):
        classes.setdefault(_class(sampler), []).append(place)
    parts = []
    for places in classes.values():
        if len(problems) == 1:
            sampling["stream"] = streams[0]
            data = run(samplers[0], seed, **sampling)
            data = data.expand_dims(PROBLEM).transpose(BATCH, PROBLEM, ...)
        else:
            of_class = ProblemsSampler([samplers[i] for i in places], [streams[i] for i in places])
            data = run(of_class, seed, **sampling)
        arrays = {str(k): v.values for k, v in data.variables.items() if BATCH in v.dims}
        notes: dict[str, list[str]] = {"faults": [], "cautions": []}
        for k, i in enumerate(places):
            values = {name: array[:, k] for name, array in arrays.items()}
            task, heads, *_ = problems[i]
            queries = samplers[i].queries
            met = describe_run(values, data.attrs, task, heads, queries, shares[i], precision)
            for name, texts in notes.items():
                texts.append(met.get(name, "").replace("\n", "; "))
        data = data.assign({name: (PROBLEM, texts) for name, texts in notes.items()})
        data["rounding"] = (PROBLEM, [shares[i].largest for i in places])
        parts.append(data.assign_coords({PROBLEM: places}))
    return xr.concat(parts, PROBLEM, combine_attrs="override").sortby(PROBLEM)


def _samplers(
    problems: Sequence[tuple[Task, Heads, int, ArrayLike]], options: dict[str, Any]
) -> Iterator[tuple[EnsembleSampler, Shares]]:
    """The sampler of every problem; of several, an error names the place."""
    unless = "\n" if len(problems) > 1 else ""
    for place, problem in enumerate(problems):
        with located(f"problem {place}", unless):
            sampler = sampler_of(*problem, **options)
        yield sampler


def _class(sampler: EnsembleSampler) -> object:
    """Key of a compilation: shapes and static parts."""
    known = split_constant(sampler.task)[0], sampler.heads, sampler.queries
    leaves, structure = jax.tree.flatten(known)
    return structure, tuple(np.shape(leaf) for leaf in leaves), sampler.n, sampler.precision


def _stack(known: Sequence[Shared]) -> Shared:
    """Data that replicates share, with a leading axis of problems."""
    if any(shared.constant is not None for shared in known):
        none = jnp.zeros(())
        known = [s._replace(constant=none if s.constant is None else s.constant) for s in known]
    stacked: Shared = jax.tree.map(lambda *leaves: np.stack(leaves), *known)
    return stacked


def _fold_stream(words: np.ndarray, stream: tuple[int, ...]) -> np.ndarray:
    for number in stream:
        words = threefry.fold_in(words, number)
    return words
