"""Exact theory for designs without a projected law: quasi-Monte Carlo over the keys' space R^d.

The integrals are those of :mod:`sims.theory.exact_integrals` in the coordinates ``ξ = X``, in which
the target is known (Var[m | ξ] = 0). The points of a randomised Sobol set take the law's place: a
law of N points, for which every integral is exact. Eight independent randomisations give the
value, their mean, and its error. Accuracy is limited by how many points a kernel reaches: narrow
kernels in many dimensions do not converge, and are reported so.
"""

from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.special import logsumexp, ndtr
from scipy.stats import chi2

from sims.errors import InputError
from sims.problem import Heads, Task
from sims.problem.design_laws import CubeDesign, CustomDesign, Design, MixtureDesign, SphereDesign
from sims.problem.kernels import Kernel
from sims.theory import exact_batch as batch
from sims.theory.exact_integrals import Head, Regression, Single, point_single
from sims.theory.exact_pairs import Pair
from sims.theory.exact_range import compiled_log, log_range
from sims.theory.exact_scattered import scattered_pair
from sims.theory.exact_solve import Solution, compare
from sims.theory.quadrature import sobol_normal

SIZES = (11, 13, 15, 17)
"""log2 of the number of points, by level."""
ROOMS = (13, 17)
"""log2 of the sizes of arrays that hold them: two levels share a program."""
TAIL = 1e-7
"""Share of any integral left outside the range of log s."""
STEP = 0.4
"""In log s; its error is 1e-8."""
FREEDOM = 4.0
"""Of the multivariate t that a custom design's points are drawn from."""


def sample_points(design: Design, log2_size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One randomised set of points (N, d) of the design and their log weights (N,), of sum 1."""
    d = design.dimension
    extra = isinstance(design, MixtureDesign | CustomDesign)
    normal = sobol_normal(d + extra, log2_size, seed)
    equal = np.full(len(normal), -np.log(len(normal)))
    if isinstance(design, CubeDesign):
        return float(design.half_width) * (2 * ndtr(normal) - 1), equal
    if isinstance(design, SphereDesign):
        return float(design.radius) * normal / np.linalg.norm(normal, axis=1, keepdims=True), equal
    if isinstance(design, MixtureDesign):
        edges = np.cumsum(np.asarray(design.weights))[:-1]
        chosen = np.searchsorted(edges, ndtr(normal[:, -1]), "right")
        points = np.zeros((len(normal), d))
        for index, (mean, factor) in enumerate(zip(design.means, design.factors, strict=True)):
            own = chosen == index
            points[own] = np.asarray(mean) + normal[own, :-1] @ np.asarray(factor)
        return points, equal
    if not isinstance(design, CustomDesign) or design.log_density is None:
        raise InputError("design", type(design).__name__, "one with a log_density (exact)")
    stretch = np.sqrt(FREEDOM / chi2.ppf(ndtr(normal[:, -1]), FREEDOM))
    root = np.linalg.cholesky(np.asarray(design.covariance))
    whitened = normal[:, :-1] * stretch[:, None]
    points = np.asarray(design.mean) + whitened @ root.T
    proposal = -0.5 * (FREEDOM + d) * np.log1p(np.sum(whitened**2, axis=1) / FREEDOM)
    log_weight = np.asarray(design.log_density(jnp.asarray(points))) - proposal
    return points, log_weight - logsumexp(log_weight)


def ambient_single(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    phase: Array,
    rule: Any,
    head: Head,
    regression: Regression,
) -> Single:
    """:func:`~sims.theory.exact_integrals.point_single` for each set of points."""
    *sets, used = rule
    return jax.lax.map(
        lambda r: point_single(kernel, count, step, n, phase, (*r, used), head, regression), sets
    )


def ambient_pair(
    kernel: Kernel,
    count: int,
    step: Array,
    n: Array,
    phase: Array,
    rule: Any,
    heads: tuple[Head, Head],
    singles: tuple[Single, Single],
    regression: Regression,
) -> Pair:
    """:func:`~sims.theory.exact_scattered.scattered_pair` for each set of points: ξ_h = ξ_g = X."""

    def replicate(item: Any) -> Pair:
        (points, log_weight), curves = item
        blocks = (len(points) // 1024, 1024)
        xi = points.reshape(*blocks, -1)
        same = jnp.ones(points.shape[1])
        return scattered_pair(
            kernel,
            count,
            step,
            n,
            phase,
            heads,
            curves,
            regression,
            same,
            xi,
            xi,
            log_weight.reshape(blocks),
            used // 1024,
        )

    *sets, used = rule
    return jax.lax.map(replicate, (tuple(sets), singles))


def _no_rule(*_: Any) -> None:
    return None


SINGLE = batch.Method("ambient sobol", ambient_single, _no_rule, True, Single)
PAIR = batch.Method("ambient sobol", ambient_pair, _no_rule, True, Pair)


def solve_ambient(
    task: Task,
    heads: Heads,
    n: int,
    queries: np.ndarray,
    truth: np.ndarray,
    rtol: float,
    max_level: int,
) -> Solution:
    """All terms (σ² = 1) at every query, as :func:`sims.theory.exact_solve.solve` gives them."""
    out = Solution.blank(len(queries), heads.count)
    out.methods.add(SINGLE.name)
    out.converged[:] = False
    for size in SIZES[: max_level + 1]:
        sets = [sample_points(task.design, size, seed) for seed in range(batch.RANDOMISATIONS)]
        points, log_weight = (np.stack(part) for part in zip(*sets, strict=True))
        # Points behind the first 2^size are no part of any sum.
        behind = (0, 0), (0, 2 ** next(room for room in ROOMS if room >= size) - 2**size)
        rule = np.pad(points, (*behind, (0, 0))), np.pad(log_weight, behind), np.asarray(2**size)
        for q in range(len(queries)):
            if not out.converged[q].all():
                _query(out, task, heads, n, queries[q], q, float(truth[q]), rule, rtol)
        if out.converged.all():
            break
    return out


def _query(
    out: Solution,
    task: Task,
    heads: Heads,
    n: int,
    x: np.ndarray,
    q: int,
    truth: float,
    rule: Any,
    rtol: float,
) -> None:
    frequency = np.asarray(task.target.frequency)
    phase, terms, d = np.asarray(task.target.phase), len(frequency), task.dimension
    compact = heads.kernel.support is not None
    # Given X the target is known.
    known: Any = (
        frequency,
        np.zeros_like(frequency),
        np.asarray(task.target.amplitude),
        *[np.zeros((terms, terms))] * 2,
    )
    regression = Regression(*known)
    frames = np.asarray(heads.frames)
    points, log_weight, used = rule[0], rule[1][:, : rule[2]], int(rule[2])
    lows, counts = [], []
    for h in range(heads.count):
        log_kernel = np.asarray(
            compiled_log(heads.kernel)(
                (frames[h].T @ x)[:, None, None],
                np.moveaxis(points @ frames[h], 2, 0),
                heads.bandwidth[h],
            )
        )[:, :used]
        if not compact and np.isneginf(log_kernel).any():
            allowed = "Kernel(…, support=radius) for exact theory"
            raise InputError(
                "heads.kernel", f"{heads.kernel.name}, which vanishes somewhere", allowed
            )
        weight = log_weight - np.log(len(log_weight))
        low, high, out.effective_keys[q, h] = log_range(
            weight.ravel(), log_kernel.ravel(), n, TAIL, compact
        )
        lows.append(low)
        # One more point, which u = ∞ takes for a compact kernel.
        counts.append(int(np.ceil((high - low) / STEP)) + 2)
    count = batch.bucket(max(counts))
    if n == 1 and not compact:
        _one_key(out, task, q, (points[:, :used], log_weight), rtol, truth)
        return
    if count > batch.MAX_COUNT:
        out.put_unknown(q)
        return
    items = []
    for h in range(heads.count):
        fields: Any = (
            frames[h].T,
            frames[h].T @ x,
            np.zeros(d),
            np.eye(d),
            float(heads.bandwidth[h]),
            lows[h],
            0.0,
        )
        items.append(Head(*fields))

    def run(method: batch.Method, stacked: Any) -> Any:
        return batch.Job(method, heads.kernel, count, STEP, n, phase, rule, stacked).run()

    curves = run(SINGLE, [(item, regression) for item in items])
    singles = [Single(*(leaf[h] for leaf in curves)) for h in range(heads.count)]
    found = []
    for h, one in enumerate(singles):
        means = one.centre * one.reach
        value, error = compare(one, True, None, TAIL)
        out.mean[q, h] = means.mean()
        out.mean_error[q, h] = 3 * means.std(ddof=1) / np.sqrt(len(means)) + 2 * TAIL * np.sqrt(
            max(value.signal, 0.0)
        )
        out.empty[q, h] = 1 - value.reach
        scale = np.sqrt((out.mean[q, h] - truth) ** 2 + max(value.signal, 0.0))
        out.put_values(q, h, h, value, error, rtol, float(value.signal))
        out.converged[q, h, h] &= out.mean_error[q, h] <= rtol * scale + 1e-13
        found.append(value)
    pairs = list(combinations(range(heads.count), 2))
    if pairs:
        stacked = [((items[h], items[g]), (singles[h], singles[g]), regression) for h, g in pairs]
        results = run(PAIR, stacked)
        for index, (h, g) in enumerate(pairs):
            value, error = compare(Pair(*(leaf[index] for leaf in results)), True, None, TAIL)
            scale = float(np.sqrt(max(found[h].signal * found[g].signal, 0.0)))
            for a, b in ((h, g), (g, h)):
                out.put_values(q, a, b, value, error, rtol, scale)


def _one_key(out: Solution, task: Task, q: int, rule: Any, rtol: float, truth: float) -> None:
    """n = 1 with a kernel that never vanishes: f̂ = Y."""
    values, weight = np.asarray(task.target(jnp.asarray(rule[0]))), np.exp(rule[1])
    means = np.sum(weight * values, axis=1)
    variances = np.sum(weight * (values - means[:, None]) ** 2, axis=1)
    root = np.sqrt(len(means))
    out.mean[q], out.mean_error[q] = means.mean(), 3 * means.std(ddof=1) / root
    out.signal[q], out.signal_error[q] = variances.mean(), 3 * variances.std(ddof=1) / root
    out.noise[q], out.effective_keys[q] = 1.0, 1.0
    scale = np.sqrt((means.mean() - truth) ** 2 + variances.mean())
    out.converged[q] = bool(
        out.mean_error[q, 0] <= rtol * scale + 1e-13
        and out.signal_error[q, 0, 0] <= rtol * variances.mean() + 1e-13
    )
