"""The engine: Monte Carlo estimates of every term, in iid batches.

Each batch of R replicates yields one **unbiased** estimate of every term, the label noise
integrated out given the design (Rao–Blackwell): the mean deviation b̄, ``b̄b̄ᵀ − s/R`` for the bias
product, the sample covariance s for the signal part, and the mean of ``σ² Σ_i w_hi w_gi`` for the
noise part. Everything downstream is a mean of B iid vectors, with its Monte Carlo standard error.

Beside them stand the same estimates from drawn Gaussian labels, an independent check of that
step, with names that begin with ``raw_``:

==============================================  =================================================
``raw_bias`` (batch, query, head)               mean of f̂_h − m(x)
``raw_bias_product`` (…, head, head2)           unbiased, as above
``raw_total_covariance`` (…, head, head2)       sample covariance of f̂: signal + noise
``integrated_raw_*`` (batch, head, head2)       the last two, averaged over queries
``raw_squared_bias``, ``raw_variance``,         the scalar terms of :mod:`sims.terms` of the same
``raw_covariance``, ``raw_ensemble_variance``,  name, from raw labels
``raw_mse``, ``raw_mean_head_mse`` (batch)
==============================================  =================================================

With a :class:`~sims.simulation.replicate.Linearisation`, also what first-order theory leaves out,
exact less first order: ``bias_remainder`` (batch, query, head), ``signal_remainder`` and
``noise_remainder`` (…, head, head2), ``integrated_*`` of the last two, and the scalar terms of the
variance as ``<term>_remainder`` (batch).

``empty_rate`` (batch, query, head) is the fraction of replicates in which a compact kernel had no
key in reach; there the estimate counts as 0.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr
from jax.sharding import Mesh

from sims import terms
from sims.errors import InputError
from sims.problem import Heads, Task, check_compatible
from sims.problem.checks import check_count, check_non_negative
from sims.simulation.batches import Settings, run_batches
from sims.simulation.draws import batch_keys, replicate_key, root_key
from sims.simulation.identity import fingerprint, seed_text
from sims.simulation.native import native_sums, usable
from sims.simulation.plan import Plan, Shape, make_plan
from sims.simulation.progress import Progress
from sims.simulation.replicate import PILOT_DESIGNS, Control, Linearisation, pilot
from sims.simulation.result import RAW_SCALARS, batch_arrays, build
from sims.simulation.sums import KernelSums, streamed_sums

Batches = dict[str, list[np.ndarray]]
"""By variable, one array a batch."""

CHECK_EVERY = 8
"""Batches between looks at the precision: fixed, so that stopping does not depend on devices."""


PILOT = 2**32 - 1
"""The batch whose number names the pilot design of the control variate."""


def estimate(
    task: Task,
    heads: Heads,
    n: int,
    queries: Any,
    key_or_seed: Any,
    *,
    replicates_per_batch: int = 64,
    batches: int = 16,
    rel_mcse: float | None = None,
    negligible: float = 1e-3,
    max_batches: int = 1024,
    precision: str = "float32",
    raw_labels: bool = True,
    linearisation: Linearisation | None = None,
    control_variate: bool = False,
    weights: Any = None,
    keep_queries: bool = True,
    devices: Sequence[Any] | None = None,
    memory_budget: int = 2**30,
    replicates_at_once: int | None = None,
    key_block: int | None = None,
    query_block: int | None = None,
    query_group: int | None = None,
    kernel_sums: KernelSums | None = None,
    progress: bool = False,
    resume: xr.Dataset | None = None,
) -> xr.Dataset:
    """Estimate bias, signal and noise covariance of every head (pair) at every query.

    Draws are named by (seed, batch, replicate) alone: devices, blocks, budget and resumption
    change numbers only by rounding, and a longer run begins with the batches of a shorter one.

    Args:
        task: design, target m, noise level.
        heads: H heads.
        n: number of keys, ≥ 1.
        queries: x, (Q, d).
        key_or_seed: an integer, or a Threefry key.
        replicates_per_batch: R ≥ 2.
        batches: B ≥ 2 in all, those of ``resume`` included; without ``rel_mcse`` just as many.
        rel_mcse: target precision. Run until, for every scalar term, mcse ≤ rel_mcse·|term|, or
            the term is negligible: |term| + 2·mcse ≤ negligible·MSE. Looked at after every
            8th batch, from max(8, ``batches``) on. A run that stops so has stopped where the spread
            happened to look small: its fixed-n intervals are slightly optimistic (use sequential
            intervals where that matters).
        negligible: share of the MSE below which a term does not hold up stopping; 0 for none.
        max_batches: limit under ``rel_mcse``.
        precision: "float32" or "float64", of draws, kernels and sums within a block. Moments are
            float64 always. The two see different draws.
        raw_labels: also the raw-label estimates.
        linearisation: also the remainders, with linearised heads as control variates (use
            float64: a remainder is a small difference).
        control_variate: take most of the spread out of the signal covariance, unbiased and without
            theory (:class:`~.replicate.Control`), where about ten keys or more are attended to; the
            estimates need no longer be positive semidefinite. Costs a second set of pair sums, and
            a pilot design of 16 n keys.
        weights: ensemble weights α (H,), sum 1; None is uniform.
        keep_queries: False drops everything with a query dimension, keeping integrals.
        devices: JAX devices to spread batches over; None takes all.
        memory_budget: bytes that the working set may take (of one device, if it is no CPU).
            The result itself is not counted.
        replicates_at_once: tuning, like the next three: None chooses. Lowered to a divisor of R.
        key_block: keys weighed together.
        query_block: queries weighed together.
        query_group: queries in one call of the compiled program; more groups draw X again.
        kernel_sums: computes the sums over a block of keys (:data:`~.sums.KernelSums`); a plain
            function, since its identity selects a compilation. None chooses: C++ on a CPU where
            it is compiled and knows the kernel, else XLA.
        progress: show progress on stderr.
        resume: an earlier result for the same problem and seed; goes on at its next batch.

    Returns:
        The dataset of :mod:`sims.terms`, batched and with MCSE, the raw-label variables above,
        ``empty_rate``, and attributes: ``seed``, ``n``, ``replicates_per_batch``, ``batches``,
        ``batches_asked``, ``replicates`` (their product: replicates done), ``precision``,
        ``device``, ``device_count``, ``kernel_sums`` (the function's name), ``stopped``
        ("precision" or "limit"), ``rel_mcse``, ``problem`` (a fingerprint).

    Raises:
        InputError: an argument cannot be used.
    """
    queries, n = np.asarray(check_compatible(task, heads, n, queries)), int(n)
    if control_variate and n < 2:
        raise InputError("control_variate", control_variate, "False for a single key (n >= 2)")
    root = root_key(key_or_seed)
    check_non_negative("negligible", negligible)
    _check(replicates_per_batch, batches, rel_mcse, max_batches, precision, memory_budget)
    for name, size in {
        "replicates_at_once": replicates_at_once,
        "key_block": key_block,
        "query_block": query_block,
        "query_group": query_group,
    }.items():
        if size is not None:
            check_count(name, size)
    devices = list(jax.devices() if devices is None else devices)
    if not devices:
        raise InputError("devices", devices, "at least one JAX device")
    shape = Shape(
        queries=len(queries),
        heads=heads.count,
        dimension=heads.dimension,
        width=heads.width,
        terms=len(task.target.amplitude),
        n=n,
        itemsize=np.dtype(precision).itemsize,
    )
    limit = batches if rel_mcse is None else max(max_batches, batches)
    if kernel_sums is None:
        work = float(n) * len(queries) * heads.count * replicates_per_batch * limit
        native = usable(heads.kernel, devices[0].platform, work)
        kernel_sums = native_sums if native else streamed_sums
    plan = make_plan(
        shape,
        replicates_per_batch,
        memory_budget,
        len(devices),
        platform=devices[0].platform,
        streamed=kernel_sums is streamed_sums,
        key_block=key_block,
        query_block=query_block,
        query_group=query_group,
        replicates_at_once=replicates_at_once,
    )
    settings = Settings(
        n, replicates_per_batch, plan.blocks, plan.at_once, precision, raw_labels, kernel_sums
    )
    attrs: dict[str, Any] = {
        "seed": seed_text(root) if not isinstance(key_or_seed, int) else key_or_seed,
        "n": n,
        "replicates_per_batch": replicates_per_batch,
        "batches_asked": limit,
        "precision": precision,
        "device": devices[0].device_kind,
        "device_count": len(devices),
        "kernel_sums": kernel_sums.__name__,
        "rel_mcse": "none" if rel_mcse is None else rel_mcse,
        "problem": fingerprint(
            task, heads, queries, root, settings, (keep_queries, control_variate), linearisation
        ),
    }
    done = _resumed(resume, attrs["problem"])

    def labelled(collected: Batches, attrs: dict[str, Any] | None = None) -> xr.Dataset:
        arrays = {name: np.stack(value) for name, value in collected.items()}
        return build(arrays, keep_queries=keep_queries, weights=weights, attrs=attrs)

    def enough(collected: Batches) -> bool:
        count = len(collected["bias"])
        if rel_mcse is None or count < max(CHECK_EVERY, batches) or count % CHECK_EVERY:
            return False
        needed = {name: collected[name] for name in ("bias", *terms.PAIRS, "empty_rate")}
        return reached(labelled(needed), rel_mcse, negligible)

    runner = _Runner(
        task, heads, queries, linearisation, root, settings, plan, devices, keep_queries,
        control_variate,
    )  # fmt: skip
    reached_target = _collect(runner, done, limit, enough, progress)
    count = len(done["bias"])
    attrs |= {
        "batches": count,
        "replicates": count * replicates_per_batch,
        "stopped": "precision" if reached_target else "limit",
    }
    return terms.add_mcse(labelled(done, attrs))


def reached(data: xr.Dataset, rel_mcse: float, negligible: float = 1e-3) -> bool:
    """Whether every scalar term has mcse ≤ rel_mcse·|term|, or is negligible beside the MSE.

    Negligible: |term| + 2·mcse ≤ negligible·MSE.

    Terms that do not exist (the cross terms of a single head are NaN) are passed over.
    """
    mse = float(data["mse"].mean())
    for name in terms.SCALARS:
        value, error = abs(float(data[name].mean())), float(terms.mcse(data[name]))
        if np.isnan(value):
            continue
        if error > rel_mcse * value and value + 2 * error > negligible * mse:
            return False
    return True


def efficiency_gain(data: xr.Dataset) -> xr.Dataset:
    """How many times integrating out the labels cut the variance of each estimated scalar term.

    The ratio, over batches, of the variance of the raw-label estimate to that of the
    Rao–Blackwellised one (both unbiased for the same term, from the same designs). With B batches
    its own relative error is about 2/√(B − 1) at most.

    Raises:
        InputError: the result has no raw-label estimates.
    """
    if "raw_mse" not in data:
        raise InputError("raw_labels", False, "True: a result with raw-label estimates")
    ratio = {
        name: data[f"raw_{name}"].var(terms.BATCH, ddof=1) / data[name].var(terms.BATCH, ddof=1)
        for name in RAW_SCALARS
    }
    return xr.Dataset(ratio)


class _Runner:
    """Dispatches batches, one a device at a time, over groups of queries."""

    def __init__(
        self,
        task: Task,
        heads: Heads,
        queries: np.ndarray,
        linearisation: Linearisation | None,
        root: Any,
        settings: Settings,
        plan: Plan,
        devices: list[Any],
        keep_queries: bool,
        control_variate: bool,
    ) -> None:
        self.problem, self.root, self.settings = (task, heads), root, settings
        self.mesh, self.width = Mesh(np.array(devices), ("batch",)), len(devices)
        self.count, self.keep_queries = len(queries), keep_queries
        padding = -len(queries) % plan.group

        def grouped(array: Any) -> np.ndarray:
            array = np.asarray(array, float)
            padded = np.pad(array, [(0, padding)] + [(0, 0)] * (array.ndim - 1))
            return padded.reshape(-1, plan.group, *array.shape[1:])

        stacked = jax.tree.map(grouped, (queries, linearisation))
        count = len(stacked[0])
        groups = [jax.tree.map(lambda a, i=i: a[i], stacked) for i in range(count)]
        self.groups = [
            (*group, self._control(group[0]) if control_variate else None) for group in groups
        ]

    def _control(self, queries: np.ndarray) -> Control:
        """Of a design that no batch uses, so that it is independent of all of them."""
        return pilot(
            *self.problem, queries, replicate_key(self.root, PILOT, 0),
            n=PILOT_DESIGNS * self.settings.n, dtype=self.settings.dtype,
            blocks=self.settings.blocks, kernel_sums=self.settings.kernel_sums,
        )  # fmt: skip

    def dispatch(self, start: int) -> list[dict[str, Any]]:
        """Start batches ``start``, …, ``start + width − 1``, without waiting for them."""
        numbers = np.arange(start, start + self.width, dtype=np.uint32)
        keys = batch_keys(self.root, numbers, self.settings.replicates)
        return [
            run_batches(*self.problem, *group, keys, settings=self.settings, mesh=self.mesh)
            for group in self.groups
        ]

    def gather(self, parts: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        """Wait for the batches; per query, or averaged over queries (as one query)."""
        out = {}
        for name in parts[0]:
            value = np.concatenate([np.asarray(part[name]) for part in parts], axis=1)
            value = value[:, : self.count]
            out[name] = value if self.keep_queries else value.mean(axis=1, keepdims=True)
        return out


def _collect(
    runner: _Runner, done: Batches, limit: int, enough: Callable[[Batches], bool], show: bool
) -> bool:
    """Append batches to ``done`` until ``enough`` or the limit; returns whether it was enough.

    The next batches are started before the last are waited for, so no device idles meanwhile;
    those beyond the stopping point or the limit are thrown away.
    """
    have = len(done.get("bias", ()))
    if have and enough(done):
        return True
    waiting: list[list[dict[str, Any]]] = []
    started = have
    with Progress(limit, have, show) as bar:
        while have < limit:
            while started < limit and len(waiting) < 2:
                waiting.append(runner.dispatch(started))
                started += runner.width
            arrived = runner.gather(waiting.pop(0))
            for i in range(min(runner.width, limit - have)):
                for name, value in arrived.items():
                    done.setdefault(name, []).append(value[i])
                have += 1
                bar.update(have)
                if enough(done):
                    return True
    return False


def _resumed(resume: xr.Dataset | None, problem: str) -> Batches:
    if resume is None:
        return {}
    if resume.attrs.get("problem") != problem:
        raise InputError(
            "resume", resume.attrs.get("problem"), "a result of the same problem, seed and settings"
        )
    return {name: list(value) for name, value in batch_arrays(resume).items()}


def _check(
    replicates: int,
    batches: int,
    rel_mcse: float | None,
    max_batches: int,
    precision: str,
    memory_budget: int,
) -> None:
    check_count("replicates_per_batch", replicates, least=2)
    check_count("batches", batches, least=2)
    check_count("max_batches", max_batches, least=2)
    check_count("memory_budget", memory_budget)
    if rel_mcse is not None and not (np.isfinite(rel_mcse) and rel_mcse > 0):
        raise InputError("rel_mcse", rel_mcse, "finite and > 0, or None")
    if precision not in ("float32", "float64"):
        raise InputError("precision", precision, "float32 or float64")
