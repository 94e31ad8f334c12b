"""The loop: start batches, wait for them, look whether they suffice, label what came."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypedDict

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array
from rich.console import Console
from rich.progress import Progress

from sims.base.checks import check_count
from sims.base.errors import InputError
from sims.base.runtime import forget_compiled, lost_digits
from sims.montecarlo.draws import Draw
from sims.montecarlo.history import CHECK_EVERY, History, Stopping, unstacked
from sims.montecarlo.sampler import Rounds, Sampler


class Sampling(TypedDict, total=False):
    """Size of a sample: the keywords of :func:`run`, which explains them, devices apart."""

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
    """Sample iid batches until there are enough, and return them with their MCSE.

    Replicate r of batch b has the random key ``fold_in(fold_in(root, b), r)``: devices, chunks
    and resumption change numbers only by rounding, and a longer run begins with the batches of a
    shorter one.

    Args:
        sampler: :class:`~sims.montecarlo.Replicates`, :class:`~sims.montecarlo.HostReplicates`,
            :class:`~sims.montecarlo.HostBatches`, or any :class:`~sims.montecarlo.Sampler`.
        seed: an integer, or a Threefry key.
        replicates_per_batch: R ≥ 2.
        batches: B ≥ 2 in all, those of ``resume`` included; without ``rel_mcse`` just as many.
        rel_mcse: target precision. Run until, for every output, ``mcse ≤ rel_mcse·abs(mean)``, or
            the output is ``negligible``, as the sampler has it; never while values are not
            finite, but for entries that do not exist (NaN in every batch, beside others that do).
            Looked at after every 8th batch, from max(8, ``batches``) on. A run that stops so has
            stopped where the spread happened to look small: its fixed-n intervals are slightly
            optimistic.
        max_batches: limit under ``rel_mcse``; None is 1024.
        negligible: share of the largest output (of the MSE, for :func:`sims.simulation.estimate`)
            below which another does not hold up stopping; 0 for none.
        stream: numbers ≥ 0 that tell independent parts of a study with one seed apart; they are
            folded into the root one after another.
        devices: JAX devices to spread batches over; None takes all.
        resume: an earlier result of the same sampler, seed, stream and R; sampling goes on at its
            next batch.
        checkpoint: a file that keeps the batches, once in :data:`~sims.base.store.SECONDS`
            and when an exception ends the run; a run of the same begins with those that it has.
        progress: show progress on stderr.

    Returns:
        A dataset with dimension ``batch``, ``<name>_mcse`` beside each variable that has it, and
        attributes: ``seed``, ``stream`` if there is one, ``replicates_per_batch``, ``batches``,
        ``batches_asked`` (the limit), ``replicates`` (all that were done), ``stopped``
        ("precision" or "limit"), ``rel_mcse``, ``device``, ``device_count`` (1 of plain functions,
        and of programs that decompose many matrices at once on a CPU), ``problem`` (a digest of
        what the result is of), the sampler's own, and ``faults``, if there are any: phrases on what
        makes the numbers no evidence, such as values that are not finite.

    Raises:
        InputError: an argument cannot be used; ``resume`` is of something else, or the sampler
            holds functions that cannot be told from others, where it is resumed or kept.
    """
    check_count("replicates_per_batch", replicates_per_batch, minimum=2)
    stopping = Stopping(batches, rel_mcse, max_batches, negligible)
    devices = list(jax.devices() if devices is None else devices)
    if not devices:
        raise InputError("devices", devices, "at least one JAX device")
    forget_compiled()
    draws = Draw.from_seed(seed, stream, replicates_per_batch)
    history = History(sampler, draws, checkpoint, resume is not None)
    history.resume(resume, stopping.limit)
    rounds = sampler.start(draws, devices, stopping.limit)
    try:
        with Progress(console=Console(stderr=True), transient=True, disable=not progress) as bar:
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


def _continue(history: History, rounds: Rounds, stopping: Stopping, bar: Progress) -> None:
    """Add batches until there are enough."""
    first = len(history.finished)
    total = first if stopping.is_precise(history) else max(stopping.limit, first)
    task = bar.add_task("batches", total=total, completed=first)
    for batch in islice(_compute_rounds(rounds, first, stopping.limit), total - first):
        if len(history.finished) == first and stopping.limit > CHECK_EVERY:
            history.check_labels(batch)
        history.add(batch)
        bar.advance(task)
        if stopping.is_precise(history):
            break


def _compute_rounds(rounds: Rounds, first: int, last: int) -> Iterator[dict[str, np.ndarray]]:
    """Batches from the first on, in rounds of which the last may go beyond the end.

    A round is started before the one ahead of it is waited for, so no device idles meanwhile.
    """
    firsts = iter(range(first, last, rounds.width))
    waiting = deque(map(rounds.begin, islice(firsts, 2)))
    while waiting:
        arrived = waiting.popleft()()
        yield from unstacked(arrived, rounds.width)
        waiting.extend(map(rounds.begin, islice(firsts, 1)))
