"""Which law predicts best: leave-one-out predictive densities of rival laws."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtr, ndtri

from sims.errors import InputError, one_of
from sims.judgement import Finding
from sims.judgement.scaling.laws import LAWS, MISFIT, Fit, Model, Points, Prior, fit_laws
from sims.judgement.tests import LEAST

MAX_PARETO_K = 0.7
"""Pareto k above which smoothed importance weights are not reliable (Vehtari et al. 2017)."""


@dataclass(frozen=True)
class Comparison:
    """Rival laws of the same points.

    Attributes:
        fits: by law.
        elpd: by law, log p(y_i | y_−i) at every point (k,): expected log predictive density.
        pareto_k: by law (k,), of the smoothed importance weights.
        refitted: by law (k,) bool: where k > 0.7 and the value is of an exact refit.
        problem: why the numbers cannot be used, or None.
    """

    fits: dict[str, Fit]
    elpd: dict[str, np.ndarray]
    pareto_k: dict[str, np.ndarray]
    refitted: dict[str, np.ndarray]
    problem: str | None

    def difference(self, law: str, rival: str) -> tuple[float, float]:
        """elpd of ``law`` less that of ``rival``, and its standard error √k·sd over points."""
        gap = self.elpd[law] - self.elpd[rival]
        return float(gap.sum()), float(np.sqrt(len(gap)) * gap.std(ddof=1))


def compare(
    x: ArrayLike,
    y: ArrayLike,
    errors: ArrayLike,
    laws: Sequence[str] = tuple(LAWS),
    *,
    floor: bool = False,
    scatter: float = 0.0,
    scatter_scales: ArrayLike | None = None,
    prior: Prior | None = None,
    seed: int = 0,
) -> Comparison:
    """How well rival laws predict a point from the others.

    PSIS-LOO: importance weights ``1 / p(y_i | y_−i, θ)``, Pareto-smoothed (Vehtari, Gelman & Gabry
    2017). Where their k exceeds 0.7 at a point of a law, that law is refitted without the point.

    Args:
        x: as in :func:`sims.judgement.scaling.fit`, like all the rest.
        y: likewise.
        errors: likewise.
        laws: names in :data:`LAWS`, at least two.
        floor: for the powers among them.
        scatter: for all of them.
        scatter_scales: likewise.
        prior: likewise.
        seed: of the sampler.

    Raises:
        InputError: fewer than two laws, or points or options that cannot be used.
    """
    if len(set(laws)) < 2:
        raise InputError("laws", list(laws), "at least two different laws")
    points = Points.of(x, y, errors, scatter_scales)
    models = {law: Model(law, floor, scatter, prior or Prior()) for law in laws}
    fits = dict(zip(laws, fit_laws([points] * len(models), [*models.values()], seed), strict=True))
    elpd, pareto = {}, {}
    for law, fitted in fits.items():
        density = fitted.density.reshape(len(points.y), -1)
        weights, k = array_stats.psislw(density)
        elpd[law], pareto[law] = logsumexp(weights + density, axis=-1), np.asarray(k)
    again = {law: ~(k <= MAX_PARETO_K) for law, k in pareto.items()}
    flagged = [(law, i) for law in laws for i in np.flatnonzero(again[law]).tolist()]
    refits: list[Fit] = []
    if flagged:
        absent = [i for _, i in flagged]
        refits = fit_laws(
            [points] * len(flagged), [models[law] for law, _ in flagged], seed + 1, absent
        )
    for (law, i), fitted in zip(flagged, refits, strict=True):
        density = fitted.density[i].ravel()
        elpd[law][i] = logsumexp(density) - np.log(density.size)
    objections = [
        f"{f.law} law not converged: {f.problem}" for f in (*fits.values(), *refits) if f.problem
    ]
    return Comparison(fits, elpd, pareto, again, objections[0] if objections else None)


def law_claim(compared: Comparison, law: str, *, level: float, replicates: int) -> Finding:
    """Whether ``law`` predicts better than each of its rivals.

    A law beats another if it describes the points, its elpd is larger by more than :data:`LEAST`,
    and either by more than the normal quantile of ``level`` times the standard error of the
    difference, or the other does not describe the points (a gross misfit sits in few points, whose
    spread says nothing then). Supported: it beats every rival. Refuted: some rival beats it.
    Otherwise inconclusive: a power that is hard to tell from a logarithm stays undecided.

    Args:
        compared: the rivals.
        law: the one claimed.
        level: one-sided confidence of every difference.
        replicates: behind a point (the fewest).

    Returns:
        A finding whose effect is the elpd difference from the best of the others, and whose
        margin is :data:`LEAST`.
    """
    if law not in compared.fits:
        raise InputError("law", law, one_of(compared.fits, law))
    if not 0 < level < 1:
        raise InputError("level", level, "in (0, 1)")
    if compared.problem:
        return Finding("inconclusive", None, None, LEAST, level, replicates, compared.problem)
    z = float(ndtri(level))
    rivals = sorted(
        (other for other in compared.fits if other != law),
        key=lambda other: -float(compared.elpd[other].sum()),
    )
    closest = rivals[0]
    effect, error = compared.difference(law, closest)
    interval = (effect - z * error, effect + z * error)

    def beats(one: str, other: str) -> bool:
        gap, deviation = compared.difference(one, other)
        clear = gap > z * deviation or compared.fits[other].misfit < MISFIT
        return compared.fits[one].misfit >= MISFIT and gap > LEAST and clear

    def chance(one: str, other: str) -> float:
        """Normal tail of the difference: what stands for a p-value of a predictive comparison."""
        gap, deviation = compared.difference(one, other)
        rules_out = compared.fits[other].misfit < MISFIT
        return 0.0 if rules_out else float(ndtr(-gap / deviation)) if deviation else 0.0

    verdict, p = "inconclusive", 1.0
    reason = f"{law} against {closest}: elpd difference {effect:.1f} ± {error:.1f}"
    if all(beats(law, rival) for rival in rivals):
        p = max(chance(law, rival) for rival in rivals)
        verdict, reason = "supported", reason + ", and more against all others"
    elif any(beats(rival, law) for rival in rivals):
        verdict = "refuted"
        # The best of several rivals: Bonferroni.
        p = min(chance(rival, law) for rival in rivals if beats(rival, law)) * len(rivals)
    elif max(fitted.misfit for fitted in compared.fits.values()) < MISFIT:
        reason = "no law describes the points"
    else:
        reason += ": not told apart"
    p = min(p, 1.0)
    return Finding(verdict, effect, interval, LEAST, level, replicates, reason, p)
