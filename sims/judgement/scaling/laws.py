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

import numpy as np
from arviz_stats.base import array_stats
from numpy.typing import ArrayLike
from scipy.stats import chi2

from sims.errors import InputError, one_of
from sims.judgement import Finding
from sims.judgement.scaling.sampler import Draws, Problem, diagonalise, pointwise, sample
from sims.judgement.settle import AFFORDABLE

MAX_RHAT, MIN_ESS = 1.01, 400
"""R-hat at most, and effective draws at least, of every parameter (Vehtari et al. 2021)."""
MISFIT = 1e-3
"""Posterior predictive p below which a law does not describe the points."""


@dataclass(frozen=True)
class Law:
    """A law of the table above.

    Attributes:
        covariate: from log x (k,) to z (k,).
        exponential: whether the link is exp.
        has_exponent: whether the law has one to report.
    """

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
        scale: s > 0; None is the largest ``|y|``.
    """

    intercept_sd: float = 2.0
    exponent_mean: float = 0.0
    exponent_sd: float = 3.0
    floor_sd: float = 0.5
    scale: float | None = None


@dataclass(frozen=True)
class Model:
    """What is fitted to points.

    Attributes:
        law: of :data:`LAWS`.
        floor: whether a power law levels off at c ≥ 0.
        scatter: 0, or σ_τ: for a law that holds only asymptotically, points may be off it by a
            relative τ, ``τ ~ half-normal(σ_τ)``, beyond their errors.
        prior: weak, unless given.

    Raises:
        InputError: an unknown law, or a scatter that is not finite and ≥ 0.
    """

    law: str = "power"
    floor: bool = False
    scatter: float = 0.0
    prior: Prior = field(default_factory=Prior)

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise InputError("law", self.law, one_of(LAWS, self.law))
        if not (np.isfinite(self.scatter) and self.scatter >= 0):
            raise InputError("scatter", self.scatter, "finite and ≥ 0")


@dataclass(frozen=True)
class Points:
    """The measured points: x (k,), y (k,), covariance (k, k) of y, scatter scales (k,)."""

    x: np.ndarray
    y: np.ndarray
    covariance: np.ndarray
    scatter_scales: np.ndarray

    @classmethod
    def of(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        errors: ArrayLike,
        scatter_scales: ArrayLike | None = None,
    ) -> "Points":
        """Points that have been checked.

        Args:
            x: > 0, at least 4 different values.
            y: their means, finite; negative values are welcome.
            errors: MCSE (k,) of independent points, or the covariance (k, k).
            scatter_scales: D (k,) > 0: what a scatter of 1 means at a point; None is ``|y|``, or
                its error where that is larger.

        Raises:
            InputError: the arrays do not fit together, or hold what cannot be used.
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
        given = np.maximum(np.abs(y), deviation) if scatter_scales is None else scatter_scales
        scales = np.broadcast_to(np.asarray(given, float), y.shape)
        if not (np.isfinite(scales).all() and (scales > 0).all()):
            raise InputError("scatter_scales", scales.tolist(), "finite and > 0")
        return cls(x, y, covariance, scales)

    def problem(self, model: Model, absent: int | None = None) -> Problem:
        """What the sampler takes, with point ``absent`` left out.

        Raises:
            InputError: an x ≤ 1 under a power of log x.
        """
        log_x, law, prior = np.log(self.x), LAWS[model.law], model.prior
        if model.law == "log_power" and (log_x <= 0).any():
            raise InputError("x", self.x.tolist(), "> 1, for a power of log x")
        scale = self.scale(prior)
        present = np.arange(len(self.y)) != (-1 if absent is None else absent)
        return Problem(
            law.covariate(log_x),
            law.exponential,
            self.y / scale,
            *diagonalise(self.covariance / scale**2, self.scatter_scales / scale, present),
            intercept_sd=float(prior.intercept_sd),
            slope_mean=float(prior.exponent_mean),
            slope_sd=float(prior.exponent_sd),
            floor_sd=float(prior.floor_sd) if model.floor and law.exponential else 0.0,
            scatter_sd=float(model.scatter),
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
        objections = []
        if not self.rhat <= MAX_RHAT:
            objections.append(f"R-hat {self.rhat:.3f} > {MAX_RHAT}")
        if not self.ess >= MIN_ESS:
            objections.append(f"effective sample size {self.ess:.0f} < {MIN_ESS}")
        if self.divergences:
            objections.append(f"{self.divergences} divergences")
        return ", ".join(objections) or None

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
    data: Sequence[Points],
    models: Sequence[Model],
    seed: int,
    absent: Sequence[int | None] | None = None,
) -> list[Fit]:
    """Fits of models to their points, all in one go.

    Args:
        data: all of the same number of points.
        models: one a data set.
        seed: of the sampler.
        absent: one a data set, the point left out of the fit; None: none.
    """
    left_out = absent or [None] * len(models)
    cases = list(zip(data, models, strict=True))
    problems = [
        points.problem(model, i) for (points, model), i in zip(cases, left_out, strict=True)
    ]
    draws = sample(Problem(*map(np.stack, zip(*problems, strict=True))), seed)
    return [_fit(*case, Draws(*(values[i] for values in draws))) for i, case in enumerate(cases)]


def _fit(points: Points, model: Model, draws: Draws) -> Fit:
    scale, law = points.scale(model.prior), LAWS[model.law]
    density, chi = pointwise(points.problem(model), draws)
    used = {"intercept": draws.intercept}
    if law.has_exponent:
        used["exponent"] = draws.slope * (1.0 if law.exponential else scale)
    if model.floor and law.exponential:
        used["floor"] = scale * draws.floor
    if model.scatter:
        used["scatter"] = draws.scatter
    return Fit(
        law=model.law,
        points=points,
        rhat=max(float(array_stats.rhat(value)) for value in used.values()),
        ess=min(
            float(array_stats.ess(value, method=method, prob=prob))
            for value in used.values()
            for method, prob in (("bulk", None), ("tail", (0.05, 0.95)))
        ),
        divergences=int(draws.diverging.sum()),
        misfit=float(chi2.sf(chi, len(points.y)).mean()),
        density=density.reshape(-1, *draws.slope.shape) - np.log(scale),
        parameters=used,
    )


def fit(
    x: ArrayLike,
    y: ArrayLike,
    errors: ArrayLike,
    law: str = "power",
    *,
    floor: bool = False,
    scatter: float = 0.0,
    scatter_scales: ArrayLike | None = None,
    prior: Prior | None = None,
    seed: int = 0,
    sets: int = 1,
) -> Fit:
    """The posterior of one law.

    Args:
        x: > 0, (k,), at least 4 different values.
        y: unbiased estimates at x (k,), in their own unit; may be negative.
        errors: their MCSE (k,), or their covariance (k, k) where points share draws.
        law: as in :class:`Model`, like floor and scatter.
        floor: whether a power law levels off at c ≥ 0.
        scatter: 0, or σ_τ.
        scatter_scales: D (k,): the deviation that τ = 1 stands for, in the unit of y; None is
            ``|y|``.
        prior: None is :class:`Prior` as it stands.
        seed: of the sampler.
        sets: of chains, pooled: a probability near 0 or 1 needs many draws.

    Raises:
        InputError: the points or options cannot be used.
    """
    points, model = (
        Points.of(x, y, errors, scatter_scales),
        Model(law, floor, scatter, prior or Prior()),
    )
    problems = Problem(*(np.stack([part] * sets) for part in points.problem(model, None)))
    pooled = (values.reshape(-1, values.shape[-1]) for values in sample(problems, seed))
    return _fit(points, model, Draws(*pooled))


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
            if factor < AFFORDABLE
            else "; it lies at the margin: no affordable number of replicates decides"
        )
    # One draw more against the verdict than seen: finitely many draws prove no probability of 0.
    against = {"supported": 1 - inside, "refuted": inside}.get(verdict, 1.0)
    p = (against * draws.size + 1) / (draws.size + 1)
    return Finding(verdict, effect, (low, high), margin, level, replicates, reason, p)
