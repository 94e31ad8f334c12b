"""The sampling loop: start batches, wait for them, check the precision, label the result."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypedDict

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from sims.base.checks import check_count
from sims.base.errors import InputError
from sims.base.progress import Bar
from sims.base.runtime import forget_changed, forget_compiled, lost_digits
from sims.montecarlo.draws import Draw
from sims.montecarlo.history import CHECK_EVERY, History, Stopping, stacked, unstacked
from sims.montecarlo.sampler import Rounds, Sampler


class Sampling(TypedDict, total=False):
    """Size of a sample: the keywords of :func:`run` (described there) except devices."""

    replicates_per_batch: int
    batches: int
    rel_mcse: float | None
    max_batches: int | None
    negligible: float
    stream: tuple[int, ...]
    resume: xr.Dataset | None
    checkpoint: Path | None
    progress: bool


def run(
    sampler: Sampler,
    seed: int | Array,
    *,
    replicates_per_batch: int = 64,
    batches: int = 16,
    rel_mcse: float | None = None,
    max_batches: int | None = None,
    negligible: float = 0.0,
    stream: tuple[int, ...] = (),
    devices: Sequence[jax.Device] | None = None,
    resume: xr.Dataset | None = None,
    checkpoint: Path | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Dataset of iid batches with their MCSE, sampled until there are enough.

    Replicate r of batch b has the random key ``fold_in(fold_in(root, b), r)``: devices, chunks
    and resumption change numbers only by rounding, and a longer run begins with the batches of a
    shorter one.

    Args:
        sampler: :class:`~sims.montecarlo.Replicates`, :class:`~sims.montecarlo.HostReplicates`,
            :class:`~sims.montecarlo.HostBatches`, or any :class:`~sims.montecarlo.Sampler`.
        seed: an integer, or a Threefry key.
        replicates_per_batch: R ≥ 2.
        batches: B ≥ 2 in total, including those of ``resume``; the exact number without
            ``rel_mcse``.
        rel_mcse: target precision. Run until, for every output, ``mcse ≤ rel_mcse·abs(mean)``, or
            the output is ``negligible``, by the sampler's rule; never while values are not
            finite, except missing entries (NaN in every batch while others are not).
            The check comes after every 8th batch, from max(8, ``batches``) on. Such a run stops
            when the spread happens to be small, so its fixed-n intervals are slightly
            optimistic.
        max_batches: limit under ``rel_mcse``; None is 1024.
        negligible: share of the largest output (of the MSE, for :func:`sims.simulation.estimate`)
            below which another output does not delay stopping; 0 for none.
        stream: numbers ≥ 0 that distinguish independent parts of a study with one seed; they are
            folded into the root in turn.
        devices: JAX devices that share the batches; None uses all.
        resume: an earlier result of the same sampler, seed, stream and R; sampling continues with
            its next batch.
        checkpoint: file in which batches are saved, once per :data:`~sims.base.store.SECONDS`
            and when an exception ends the run; the same run later starts from them.
        progress: show progress on stderr.

    Returns:
        A dataset with dimension ``batch``, ``<name>_mcse`` for each variable that has it, and
        attributes: ``seed``, ``stream`` if there is one, ``replicates_per_batch``, ``batches``,
        ``batches_asked`` (the limit), ``replicates`` (their total), ``stopped``
        ("precision" or "limit"), ``rel_mcse``, ``device``, ``device_count`` (1 for plain functions,
        and for programs that decompose many matrices at once on a CPU), ``problem`` (a digest of
        the inputs), the sampler's attributes, and, if there are any, ``faults``: reasons why the
        numbers are unusable, such as values that are not finite.

    Raises:
        InputError: an argument cannot be used; ``resume`` has other inputs; or a run is resumed or
            saved whose sampler holds functions that cannot be identified.
    """
    check_count("replicates_per_batch", replicates_per_batch, minimum=2)
    stopping = Stopping(batches, rel_mcse, max_batches, negligible)
    devices = list(jax.devices() if devices is None else devices)
    if not devices:
        raise InputError("devices", devices, "at least one JAX device")
    forget_compiled()
    forget_changed(sampler.identity())
    draws = Draw.from_seed(seed, stream, replicates_per_batch)
    history = History(sampler, draws, checkpoint, resume is not None)
    history.resume(resume, stopping.limit)
    rounds = sampler.start(draws, devices, stopping.limit)
    try:
        with Bar(progress) as bar:
            _continue(history, rounds, stopping, bar)
    except BaseException:  # an interruption, too
        history.save()
        raise
    count = len(history.finished)
    attrs = {
        "seed": draws.seed,
        "replicates_per_batch": replicates_per_batch,
        "batches": count,
        "batches_asked": stopping.limit,
        "replicates": count * replicates_per_batch,
        "stopped": "precision" if stopping.is_precise(history) else "limit",
        "rel_mcse": "none" if rel_mcse is None else rel_mcse,
        "device_count": len(devices),
        "problem": history.problem,
        **({"stream": list(draws.stream)} if draws.stream else {}),
        "device": devices[0].device_kind,
        **rounds.attrs,
    }
    return history.labelled(attrs, lost_digits(devices[0].platform))


def _continue(history: History, rounds: Rounds, stopping: Stopping, bar: Bar) -> None:
    """Add batches until there are enough."""
    first = len(history.finished)
    total = first if stopping.is_precise(history) else max(stopping.limit, first)
    task = bar.add_task("batches", total=total, completed=first)
    for batch in islice(_compute_rounds(rounds, first, stopping.limit), total - first):
        if len(history.finished) == first and stopping.limit > CHECK_EVERY:
            # Wrong labels are refused now, rather than after the last batch.
            history.sampler.label(stacked([batch]))
        history.add(batch)
        bar.advance(task)
        if stopping.is_precise(history):
            break


def _compute_rounds(rounds: Rounds, first: int, last: int) -> Iterator[dict[str, np.ndarray]]:
    """Batches in order, in rounds of which the last may exceed the end.

    A round starts before the previous one is awaited, so no device idles.
    """
    firsts = iter(range(first, last, rounds.width))
    waiting = deque(map(rounds.begin, islice(firsts, 2)))
    while waiting:
        arrived = waiting.popleft()()
        yield from unstacked(arrived, rounds.width)
        waiting.extend(map(rounds.begin, islice(firsts, 1)))
