"""The loop: start batches, wait for them, look whether they suffice, label what came."""

import time
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

from sims import estimates, store
from sims.checks import check_count, check_non_negative
from sims.errors import InputError
from sims.identity import digest
from sims.montecarlo.draws import Draw
from sims.montecarlo.sampler import BATCH, Arrays, Rounds, Sampler, with_mcse
from sims.runtime import forget_compiled, lost_digits

CHECK_EVERY = 8
"""Batches between looks at the precision: fixed, so that stopping does not depend on devices."""
MAX_BATCHES = 1024
"""Limit under ``rel_mcse`` where none is given."""
UNIDENTIFIED = "unidentified"
"""What a result is of, where that cannot be known; it cannot be resumed."""


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
        checkpoint: a file that keeps the batches, once in :data:`~sims.store.SECONDS`
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
    check_count("batches", batches, minimum=2)
    if max_batches is not None:
        check_count("max_batches", max_batches, minimum=2)
    if rel_mcse is not None and not (np.isfinite(rel_mcse) and rel_mcse > 0):
        raise InputError("rel_mcse", rel_mcse, "finite and > 0, or None")
    check_non_negative("negligible", negligible)
    devices = list(jax.devices() if devices is None else devices)
    if not devices:
        raise InputError("devices", devices, "at least one JAX device")
    forget_compiled()
    limit = batches if rel_mcse is None else max(max_batches or MAX_BATCHES, batches)
    draws = Draw.from_seed(seed, stream, replicates_per_batch)
    try:
        problem = digest(sampler.identity(), draws.words, draws.seed, draws.replicates)
    except InputError:
        if resume is not None or checkpoint is not None:
            raise
        problem = UNIDENTIFIED
    if resume is not None and resume.attrs.get("problem") != problem:
        allowed = "a result of the same problem, seed and settings"
        raise InputError("resume", resume.attrs.get("problem"), allowed)
    saved = None if checkpoint is None else store.load(checkpoint)
    first = 0 if resume is None else resume.sizes[BATCH]
    if saved is not None and saved.attrs["problem"] == problem and saved.sizes[BATCH] > first:
        resume = saved
    finished: list[dict[str, np.ndarray]] = []
    if resume is not None:
        stop = limit if resume is saved else resume.sizes[BATCH]
        arrays = sampler.unlabel(resume)
        finished = [{k: v[b] for k, v in arrays.items()} for b in range(resume.sizes[BATCH])][:stop]

    def is_precise() -> bool:
        count = len(finished)
        if rel_mcse is None or count < max(CHECK_EVERY, batches) or count % CHECK_EVERY:
            return False
        return sampler.precise(_stacked(finished), rel_mcse, negligible)

    def save() -> None:
        if checkpoint is not None and finished:
            labelled = sampler.label(_stacked(finished))
            store.save(labelled.assign_attrs(problem=problem), checkpoint)

    rounds = sampler.start(draws, devices, limit)
    first, saved_at = len(finished), time.monotonic()
    remaining = 0 if is_precise() else max(limit - first, 0)
    try:
        with Progress(console=Console(stderr=True), transient=True, disable=not progress) as bar:
            task = bar.add_task("batches", total=first + remaining, completed=first)
            for batch in islice(_computed(rounds, first, limit), remaining):
                if len(finished) == first and limit > CHECK_EVERY:
                    # Wrong labels are refused now, not after the last of many batches.
                    sampler.label(_stacked([batch]))
                finished.append(batch)
                bar.advance(task)
                if is_precise():
                    break
                if time.monotonic() - saved_at >= store.SECONDS:
                    save()
                    saved_at = time.monotonic()
    except BaseException:  # an interruption, too
        save()
        raise
    arrays, count = _stacked(finished), len(finished)
    attrs = {
        "seed": draws.seed,
        "replicates_per_batch": replicates_per_batch,
        "batches": count,
        "batches_asked": limit,
        "replicates": count * replicates_per_batch,
        "stopped": "precision" if is_precise() else "limit",
        "rel_mcse": "none" if rel_mcse is None else rel_mcse,
        "device_count": len(devices),
        "problem": problem,
        **({"stream": list(draws.stream)} if draws.stream else {}),
        "device": devices[0].device_kind,
        **rounds.attrs,
    }
    faults = lost_digits(devices[0].platform)
    if bad := sum(map(estimates.not_finite, arrays.values())):
        faults.append(f"{bad} of {sum(v.size for v in arrays.values())} values are not finite")
    if faults:
        attrs["faults"] = faults
    data = with_mcse(sampler.label(arrays))
    data.attrs.update(attrs)  # in place: a copy takes as long as a small problem
    return data


def _stacked(batches: Sequence[Arrays]) -> dict[str, np.ndarray]:
    return {name: np.stack([batch[name] for batch in batches]) for name in batches[0]}


def _computed(rounds: Rounds, first: int, last: int) -> Iterator[dict[str, np.ndarray]]:
    """Batches from the first on, in rounds of which the last may go beyond the end.

    A round is started before the one ahead of it is waited for, so no device idles meanwhile.
    """
    firsts = iter(range(first, last, rounds.width))
    waiting = deque(map(rounds.begin, islice(firsts, 2)))
    while waiting:
        arrived = waiting.popleft()()
        for place in range(rounds.width):
            yield {name: values[place] for name, values in arrived.items()}
        waiting.extend(map(rounds.begin, islice(firsts, 1)))
