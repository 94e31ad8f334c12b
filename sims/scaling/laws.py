"""Scaling laws: what is fitted, the fit with its diagnostics, and what a claim comes to.

=============  =====================  ===========================  ===============================
law            formula                covariate z                  exponent reported
=============  =====================  ===========================  ===============================
``power``      y = a x^p + c          log(x / x₀)                  p; a decay has p < 0
``log_power``  y = a (log x)^p + c    log(log x / L₀), x > 1       p
``log``        y = a + p log x        log(x / x₀)                  p, in the unit of y
``constant``   y = a                  0                            none
=============  =====================  ===========================  ===============================

with x₀ and L₀ geometric means, so that amplitude and exponent are nearly independent. Powers have
a > 0 and, with ``floor``, c ≥ 0. y is modelled itself, never its logarithm: an unbiased estimate of
a small positive quantity (a squared bias corrected for its variance) may be negative, and dropping
or logging such points biases the exponent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import arviz as az
import numpy as np
from scipy.stats import chi2

from sims.errors import InputError
from sims.judgement import Finding
from sims.scaling.sampler import Draws, Problem, diagonalise, pointwise, sample

MAX_RHAT, MIN_ESS = 1.01, 400
MISFIT = 1e-3
"""Posterior predictive p below which a law does not describe the points."""


@dataclass(frozen=True)
class Law:
    """Covariate of log x, whether the link is exp, and whether there is an exponent."""

    covariate: Callable[[np.ndarray], np.ndarray]
    exponential: bool
    has_exponent: bool = True


LAWS = {
    "power": Law(lambda log_x: log_x - log_x.mean(), True),
    "log_power": Law(lambda log_x: np.log(log_x) - np.log(log_x).mean(), True),
    "log": Law(lambda log_x: log_x - log_x.mean(), False),
    "constant": Law(np.zeros_like, False, has_exponent=False),
}
"""Every law by name."""


class NotConverged(RuntimeError):
    """The sampler's diagnostics do not allow numbers."""


@dataclass(frozen=True)
class Prior:
    """Weak priors, in units of the scale s of y.

    Attributes:
        intercept_sd: of α, where y = s·exp(α) (powers) or y = s·α (others) at x₀.
        exponent_mean: of p (powers), or of p/s (log).
        exponent_sd: likewise.
        floor_sd: of the half-normal floor c/s, where there is one.
        scale: s > 0; None is the largest |y|.
    """

    intercept_sd: float = 2.0
    exponent_mean: float = 0.0
    exponent_sd: float = 3.0
    floor_sd: float = 0.5
    scale: float | None = None


@dataclass(frozen=True)
class Points:
    """The measured points: x (k,), y (k,), covariance (k, k) of y, scatter scales (k,)."""

    x: np.ndarray
    y: np.ndarray
    covariance: np.ndarray
    scatter_scales: np.ndarray

    @classmethod
    def of(cls, x: Any, y: Any, errors: Any, scatter_scales: Any = None) -> "Points":
        """Check and label.

        Args:
            x: > 0, at least 4 different values.
            y: their means, finite; negative values are welcome.
            errors: MCSE (k,) of independent points, or the covariance (k, k).
            scatter_scales: D (k,) > 0: what a scatter of 1 means at a point; None is |y|, or its
                error where that is larger.
        """
        x, y, errors = (np.asarray(a, float) for a in (x, y, errors))
        size = len(x) if x.ndim == 1 else 0
        if y.shape != x.shape or errors.shape not in (x.shape, (size, size)):
            raise InputError(
                "points", (x.shape, y.shape, errors.shape), "(k,), (k,), (k,) or (k, k)"
            )
        if not (np.isfinite(x).all() and (x > 0).all() and len(np.unique(x)) >= 4):
            raise InputError("x", x.tolist(), "finite, > 0, at least 4 different values")
        if not np.isfinite(y).all():
            raise InputError("y", y.tolist(), "finite values")
        covariance = np.diag(errors**2) if errors.ndim == 1 else errors
        symmetric = np.isfinite(errors).all() and np.allclose(covariance, covariance.T)
        if not symmetric or np.linalg.eigvalsh(covariance).min() <= 0:
            raise InputError("errors", errors.tolist(), "positive MCSE, or a positive covariance")
        deviation = np.sqrt(np.diag(covariance))
        scales = np.maximum(np.abs(y), deviation) if scatter_scales is None else scatter_scales
        scales = np.broadcast_to(np.asarray(scales, float), y.shape)
        if not (np.isfinite(scales).all() and (scales > 0).all()):
            raise InputError("scatter_scales", scales.tolist(), "finite and > 0")
        return cls(x, y, covariance, scales)

    def problem(
        self, law: str, *, floor: bool, scatter: float, prior: Prior, absent: int | None = None
    ) -> Problem:
        """What the sampler takes, with point ``absent`` left out."""
        if law not in LAWS:
            raise InputError("law", law, ", ".join(LAWS))
        log_x = np.log(self.x)
        if law == "log_power" and (log_x <= 0).any():
            raise InputError("x", self.x.tolist(), "> 1, for a power of log x")
        if not (np.isfinite(scatter) and scatter >= 0):
            raise InputError("scatter", scatter, "finite and ≥ 0")
        scale = self.scale(prior)
        present = np.arange(len(self.y)) != (-1 if absent is None else absent)
        return Problem(
            LAWS[law].covariate(log_x),
            LAWS[law].exponential,
            self.y / scale,
            *diagonalise(self.covariance / scale**2, self.scatter_scales / scale, present),
            intercept_sd=prior.intercept_sd,
            slope_mean=prior.exponent_mean,
            slope_sd=prior.exponent_sd,
            floor_sd=prior.floor_sd if floor and LAWS[law].exponential else 0.0,
            scatter_sd=scatter,
        )

    def scale(self, prior: Prior) -> float:
        """The unit s of the model."""
        return float(np.abs(self.y).max()) if prior.scale is None else prior.scale


@dataclass(frozen=True)
class Fit:
    """A fitted law.

    Attributes:
        law: its name.
        points: the data.
        rhat: largest over parameters.
        ess: smallest over parameters, bulk and tail.
        divergences: number.
        misfit: posterior predictive p of the χ² misfit, P(χ²_k > rᵀQr) averaged over draws; small
            where the points scatter more about the law than measurement and scatter allow.
        density: log p(y_i | y_−i, θ) (k, chain, draw), of y in its own unit.
        parameters: draws (chain, draw) of those in use: ``intercept`` (α), ``exponent`` (p),
            ``floor``, ``scatter``.
    """

    law: str
    points: Points
    rhat: float
    ess: float
    divergences: int
    misfit: float
    density: np.ndarray = field(repr=False)
    parameters: dict[str, np.ndarray] = field(repr=False)

    @property
    def problem(self) -> str | None:
        """What the diagnostics object to, None if nothing: R-hat, effective size, divergences."""
        wrong = []
        if not self.rhat <= MAX_RHAT:
            wrong.append(f"R-hat {self.rhat:.3f} > {MAX_RHAT}")
        if not self.ess >= MIN_ESS:
            wrong.append(f"effective sample size {self.ess:.0f} < {MIN_ESS}")
        if self.divergences:
            wrong.append(f"{self.divergences} divergences")
        return ", ".join(wrong) or None

    @property
    def exponent(self) -> np.ndarray:
        """Posterior draws of p, all chains together.

        Raises:
            NotConverged: the diagnostics object.
            InputError: the law has no exponent.
        """
        if not LAWS[self.law].has_exponent:
            raise InputError("law", self.law, "a law with an exponent")
        if self.problem:
            raise NotConverged(f"{self.law} law not converged: {self.problem}")
        return self.parameters["exponent"].ravel()

    def interval(self, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval of p; raises as :attr:`exponent`."""
        low, high = np.quantile(self.exponent, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def fit_laws(
    data: Sequence[Points], problems: Sequence[tuple[str, Problem]], prior: Prior, seed: int
) -> list[Fit]:
    """Fit each (law, problem) to its points, all in one go; all with the same number of points."""
    fields = zip(*(problem for _, problem in problems), strict=True)
    draws = sample(Problem(*(np.stack([np.asarray(a) for a in field]) for field in fields)), seed)
    return [
        _fit(points, law, problem, Draws(*(a[i] for a in draws)), prior)
        for i, (points, (law, problem)) in enumerate(zip(data, problems, strict=True))
    ]


def _fit(points: Points, law: str, problem: Problem, draws: Draws, prior: Prior) -> Fit:
    scale = points.scale(prior)
    shape = draws.slope.shape
    theta = tuple(np.asarray(a).ravel() for a in draws[:4])
    density, chi = pointwise(
        problem, points.covariance / scale**2, points.scatter_scales / scale, theta
    )
    used = {"intercept": draws.intercept}
    if LAWS[law].has_exponent:
        used["exponent"] = draws.slope * (1.0 if LAWS[law].exponential else scale)
    if problem.floor_sd:
        used["floor"] = scale * draws.floor
    if problem.scatter_sd:
        used["scatter"] = draws.scatter
    return Fit(
        law=law,
        points=points,
        rhat=max(float(az.rhat(value)) for value in used.values()),
        ess=min(float(az.ess(v, method=m)) for v in used.values() for m in ("bulk", "tail")),
        divergences=int(draws.diverging.sum()),
        misfit=float(chi2.sf(np.asarray(chi), len(points.y)).mean()),
        density=np.asarray(density).reshape(-1, *shape) - np.log(scale),
        parameters=used,
    )


def fit(
    x: Any,
    y: Any,
    errors: Any,
    law: str = "power",
    *,
    floor: bool = False,
    scatter: float = 0.0,
    scatter_scales: Any = None,
    prior: Prior | None = None,
    seed: int = 0,
) -> Fit:
    """Fit one law.

    Args:
        x: > 0, (k,), at least 4 different values.
        y: unbiased estimates at x (k,), in their own unit; may be negative.
        errors: their MCSE (k,), or their covariance (k, k) where points share draws.
        law: of :data:`LAWS`.
        floor: whether a power law levels off at c ≥ 0.
        scatter: 0, or σ_τ: for a law that holds only asymptotically, points may be off it by a
            relative τ, ``τ ~ half-normal(σ_τ)``, beyond their errors.
        scatter_scales: D (k,): the deviation that τ = 1 stands for, in the unit of y; None is |y|.
        prior: None is :class:`Prior` as it stands.
        seed: of the sampler.

    Raises:
        InputError: the points or options cannot be used.
    """
    prior = prior or Prior()
    points = Points.of(x, y, errors, scatter_scales)
    problem = points.problem(law, floor=floor, scatter=scatter, prior=prior)
    return fit_laws([points], [(law, problem)], prior, seed)[0]


def exponent_claim(
    fitted: Fit, *, expected: float, margin: float, level: float, replicates: int
) -> Finding:
    """Whether p is within ``expected ± margin``: the region of practical equivalence (ROPE).

    Supported if the credible interval of ``level`` is inside, refuted if it is wholly outside,
    inconclusive otherwise; also where the sampler has not converged or the points do not follow
    the law (then its exponent means nothing).

    Args:
        fitted: the law.
        expected: p₀.
        margin: δ > 0, fixed before the run.
        level: posterior probability in the interval.
        replicates: behind a point (the fewest).
    """
    if not (0 < level < 1 and np.isfinite(margin) and margin > 0):
        raise InputError("level, margin", (level, margin), "level in (0, 1), margin > 0")
    try:
        draws = fitted.exponent
    except NotConverged as error:
        return Finding("inconclusive", None, None, margin, level, replicates, str(error))
    low, high = fitted.interval(level)
    effect = float(np.median(draws))
    region = f"{expected:.3g} ± {margin:.3g}"
    inside = float(np.mean(np.abs(draws - expected) <= margin))
    reason = (
        f"exponent of {len(fitted.points.y)} points against {region}: {inside:.1%} of it inside"
    )
    verdict = "inconclusive"
    if fitted.misfit < MISFIT:
        reason = f"the {fitted.law} law does not describe the points (p = {fitted.misfit:.1g})"
    elif expected - margin <= low and high <= expected + margin:
        verdict = "supported"
    elif high < expected - margin or low > expected + margin:
        verdict = "refuted"
    else:
        away = abs(abs(effect - expected) - margin)
        factor = (max(effect - low, high - effect) / away) ** 2 if away else np.inf
        reason += (
            f"; about {factor * replicates:,.2g} replicates would decide"
            if factor < 1e4
            else "; it lies at the margin: no affordable number of replicates decides"
        )
    # One draw more on the wrong side than seen: finitely many draws prove no probability of 0.
    wrong = {"supported": 1 - inside, "refuted": inside}.get(verdict, 1.0)
    p = (wrong * draws.size + 1) / (draws.size + 1)
    return Finding(verdict, effect, (low, high), margin, level, replicates, reason, p)
