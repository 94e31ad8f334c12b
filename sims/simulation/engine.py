"""The engine: Monte Carlo estimates of every term, in iid batches.

Each batch of R replicates yields one **unbiased** estimate of every term, the label noise
integrated out given the design (Rao–Blackwell): the mean deviation b̄, ``b̄b̄ᵀ − s/R`` for the bias
product, the sample covariance s for the signal part, and the mean of ``σ² Σ_i w_hi w_gi`` for the
noise part. Every later number is a mean of B iid vectors, with its Monte Carlo standard error.

``empty_rate`` (batch, query, head) is the fraction of replicates in which a compact kernel had no
key in reach; there the estimate counts as 0.

The target's constant part is subtracted before anything is drawn, and restored where weights do not
sum to 1, so that float32 resolves the rest. Rounding is measured (:mod:`sims.simulation.rounding`)
and determines the precision. The attribute ``faults`` states why numbers are unusable,
``cautions`` why they need care.
"""

from collections.abc import Sequence
from typing import Any, Unpack

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array
from numpy.typing import ArrayLike

from sims.base.errors import InputError, one_of
from sims.montecarlo import Sampling, run
from sims.problem import Heads, Kernel, SequenceDesign, Task, check_compatible, problem_digest
from sims.simulation.draws import DRAW_BLOCK
from sims.simulation.ensemble import EnsembleSampler
from sims.simulation.plan import MEMORY
from sims.simulation.result import describe_run
from sims.simulation.rounding import Shares, choose_precision

PRECISIONS = ("float32", "float64")
NEGLIGIBLE = 1e-3
"""Default share of the MSE below which a term does not delay stopping."""


def estimate(
    task: Task,
    heads: Heads,
    n: int,
    queries: ArrayLike,
    seed: int | Array,
    *,
    weights: ArrayLike | None = None,
    precision: str = "float32",
    control_variate: bool = False,
    keep_queries: bool = True,
    memory_budget: int = MEMORY,
    devices: Sequence[jax.Device] | None = None,
    **sampling: Unpack[Sampling],
) -> xr.Dataset:
    """Estimates of bias, signal and noise covariance of every head (pair) at every query.

    Draws are named by (seed, batch, replicate) alone: devices, memory and resumption change numbers
    only by rounding, and a longer run begins with the batches of a shorter one.

    Args:
        task: design, target m, noise level.
        heads: H heads.
        n: number of keys, ≥ 1; for dependent keys (:data:`~sims.problem.SEQUENCES`) at most
            :data:`~.draws.DRAW_BLOCK`.
        queries: x, (Q, d).
        seed: an integer, or a Threefry key.
        weights: ensemble weights α (H,), sum 1; None is uniform.
        precision: "float32" or "float64", for draws, kernels and sums within a block; moments are
            always float64. The two have different draws. A problem whose rounding error in float32
            would exceed 1e-4 of a term is computed in float64, with a caution.
        control_variate: reduce the spread of the signal covariance, without bias and without theory
            (:class:`~.replicate.Control`), if about ten keys or more are attended to. The estimates
            may then not be positive semidefinite. It costs a second set of pair sums and a pilot
            design of 16 n keys, and needs kernels and iid keys.
        keep_queries: False keeps only averages over queries.
        memory_budget: maximum bytes of the working set (of one device, if it is not a CPU), without
            the result.
        devices: JAX devices that share the batches; None uses all.
        sampling: size of the sample and resumption, :class:`sims.montecarlo.Sampling`:
            ``replicates_per_batch``, ``batches``, ``rel_mcse``, ``max_batches``, ``negligible`` (a
            share of the MSE, 1e-3), ``stream``, ``resume`` and ``progress`` of
            :func:`sims.montecarlo.run`. ``rel_mcse`` applies to every scalar term.

    Returns:
        The dataset of :mod:`sims.base.terms`, batched and with MCSE, ``empty_rate``, and the
        attributes of :func:`sims.montecarlo.run` with ``n``,
        ``precision`` (that of the work), ``kernel_sums`` ("C++", "CUDA" or "XLA"), ``rounding`` (a
        bound on rounding, as a share of the heads' bias² + signal variance and of their noise
        variance, whichever is larger),
        ``empty_rate`` (its mean), ``least_n_eff`` (the fewest effective keys,
        ``σ²/noise variance``, of a head at a query), ``inputs`` (a digest of the problem, the same
        in :func:`sims.predict`), ``faults`` and ``cautions`` (text,
        one phrase per line, absent if empty).

    Raises:
        InputError: an argument cannot be used, or float64 cannot hold the problem.
    """
    sampler, shares = sampler_of(
        task,
        heads,
        n,
        queries,
        weights=weights,
        precision=precision,
        control_variate=control_variate,
        keep_queries=keep_queries,
        memory_budget=memory_budget,
    )
    sampling.setdefault("negligible", NEGLIGIBLE)
    data = run(sampler, seed, devices=devices, **sampling)
    values = {str(name): variable.values for name, variable in data.variables.items()}
    points = sampler.queries
    data.attrs["inputs"] = problem_digest(task, heads, n, points, weights)
    data.attrs.update(describe_run(values, data.attrs, task, heads, points, shares, precision))
    return data


def sampler_of(
    task: Task, heads: Heads, n: int, queries: ArrayLike, *, precision: str, **options: Any
) -> tuple[EnsembleSampler, Shares]:
    """Sampler of a problem in the precision that it needs, and bounds on its rounding.

    Args:
        task: design, target m, noise level.
        heads: H heads.
        n: number of keys.
        queries: x, (Q, d).
        precision: requested precision.
        options: further attributes of the sampler.

    Raises:
        InputError: as :func:`estimate`.
    """
    if precision not in PRECISIONS:
        raise InputError("precision", precision, one_of(PRECISIONS, precision))
    points = np.asarray(check_compatible(task, heads, n, queries))
    if isinstance(task.design, SequenceDesign) and n > DRAW_BLOCK:
        raise InputError("n", n, f"at most {DRAW_BLOCK}: a sequence is drawn in one piece")
    alike = isinstance(heads.rule, Kernel) and not isinstance(task.design, SequenceDesign)
    if options.get("control_variate") and not (alike and n >= 2):
        allowed = "False, unless heads use a kernel over at least two independent keys"
        raise InputError("control_variate", True, allowed)
    used, shares = choose_precision(task, heads, int(n), points, precision)
    return EnsembleSampler(task, heads, int(n), points, used, **options), shares
