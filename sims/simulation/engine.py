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

``empty_rate`` (batch, query, head) is the fraction of replicates in which a compact kernel had no
key in reach; there the estimate counts as 0.

The target's constant part is taken off before anything is drawn and comes back where weights do not
sum to 1: float32 then resolves the rest. What rounding does to the numbers is measured
(:mod:`sims.simulation.rounding`), and the precision follows from it. Attributes say what was met:
``faults`` what makes the numbers no evidence, ``cautions`` what one should know of them.
"""

from dataclasses import fields, replace
from typing import Any, Unpack

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array
from numpy.typing import ArrayLike

from sims.errors import InputError, one_of
from sims.montecarlo import run
from sims.problem import Heads, Kernel, SequenceDesign, Task, check_compatible
from sims.simulation.draws import DRAW_BLOCK
from sims.simulation.ensemble import EnsembleSampler
from sims.simulation.method import Method, Options
from sims.simulation.plan import Tuning
from sims.simulation.result import examined
from sims.simulation.rounding import settled

NEGLIGIBLE = 1e-3
"""Share of the MSE below which a term does not hold up stopping, where none is given."""


def estimate(
    task: Task,
    heads: Heads,
    n: int,
    queries: ArrayLike,
    seed: int | Array,
    *,
    weights: ArrayLike | None = None,
    method: Method | None = None,
    tuning: Tuning | None = None,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Estimate bias, signal and noise covariance of every head (pair) at every query.

    Draws are named by (seed, batch, replicate) alone: tuning and resumption change numbers only by
    rounding, and a longer run begins with the batches of a shorter one.

    Args:
        task: design, target m, noise level.
        heads: H heads.
        n: number of keys, ≥ 1; of dependent ones (:data:`~sims.problem.SEQUENCES`) at most
            :data:`~.draws.DRAW_BLOCK`.
        queries: x, (Q, d).
        seed: an integer, or a Threefry key.
        weights: ensemble weights α (H,), sum 1; None is uniform.
        method: precision, control variate, which variables; None is ``Method()``. A field of it may
            also be given by its name: ``precision="float64"``.
        tuning: devices, memory, blocks; None leaves them to the engine.
        options: how much to sample, and from where to resume, :class:`sims.montecarlo.Sampling`:
            ``replicates_per_batch``, ``batches``, ``rel_mcse``, ``max_batches``, ``negligible`` (a
            share of the MSE, 1e-3), ``stream``, ``resume`` and ``progress`` of
            :func:`sims.montecarlo.run`. ``rel_mcse`` is of every scalar term of :mod:`sims.terms`.

    Returns:
        The dataset of :mod:`sims.terms`, batched and with MCSE, the raw-label variables above,
        ``empty_rate``, and the attributes of :func:`sims.montecarlo.run` with ``n``,
        ``precision`` (that of the work), ``kernel_sums`` (the function's name), ``rounding`` (a
        bound on rounding, as a share of the heads' bias² + signal variance and of their noise
        variance, whichever is larger),
        ``empty_rate`` (its mean), ``least_n_eff`` (the fewest effective keys,
        ``σ²/noise variance``, of a head at a query), ``faults`` and ``cautions`` (lists of
        phrases, absent if empty).

    Raises:
        InputError: an argument cannot be used, or float64 cannot hold the problem.
    """
    tuning = tuning or Tuning()
    sampling: Any = dict(options)
    for name in sampling.keys() - Options.__optional_keys__:
        allowed = one_of(sorted({*Options.__optional_keys__, "method", "tuning", "weights"}), name)
        raise InputError("option of estimate", name, allowed)
    named = {f.name: sampling.pop(f.name) for f in fields(Method) if f.name in sampling}
    method = replace(method or Method(), **named)
    points = np.asarray(check_compatible(task, heads, n, queries))
    if not isinstance(heads.rule, Kernel):
        if method.control_variate:
            raise InputError("control_variate", True, f"False for weight rule {heads.rule.name}")
        if tuning.kernel_sums is not None:
            raise InputError("kernel_sums", tuning.kernel_sums, "None for a weight rule")
    if isinstance(task.design, SequenceDesign):
        if method.control_variate:
            raise InputError("control_variate", True, "False for dependent keys")
        if n > DRAW_BLOCK:
            raise InputError("n", n, f"at most {DRAW_BLOCK}: a sequence is drawn in one piece")
    if method.control_variate and n < 2:
        raise InputError("control_variate", True, "False for a single key (n >= 2)")
    enough, shares = settled(task, heads, int(n), points, method.precision)
    used = replace(method, precision=enough)
    sampler = EnsembleSampler(task, heads, int(n), points, used, weights, tuning)
    devices = jax.devices() if tuning.devices is None else tuning.devices
    sampling.setdefault("negligible", NEGLIGIBLE)
    data = run(sampler, seed, devices=devices, **sampling)
    return examined(data, task, heads, points, shares, method.precision)
