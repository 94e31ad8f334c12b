"""First-order theory at the run's queries, and the angle law, an average over all queries.

Exact theory beside first order where there are few keys.
"""

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from sims.problem.design_laws import GaussianDesign
from sims.problem.frames import principal_angles
from sims.runtime import in_threads
from sims.study.experiment import Experiment, Point
from sims.study.population import PROBLEM, members, predict_point
from sims.study.roads import predict_terms
from sims.study.schema import TheorySpec
from sims.theory import noise_correlation_law


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Every point's terms, with ``law`` at its angles and ``law_curve`` at equal ones.

    ``curve_angle`` is in degrees. Of a population there is ``each_law`` (problem) and
    ``each_overlap`` (problem), the mean squared cosine of the principal angles of its two heads.
    Where keys are N(0, Σ) and queries N(0, κ²Σ) ``law`` is at the canonical correlations, beside
    ``canonical_correlation`` and ``principal_angle`` of the pair.
    """
    most, settings = experiment.settings["exact_keys"], experiment.theory
    first = settings.model_copy(update={"order": "first"})
    seed = experiment.simulation.seed

    def terms(point: Point) -> xr.Dataset:
        if point.spec.queries.kind == "correlated":
            return predict_terms(point.spec.build(), first).assign(canonical(point))
        if point.population is None:
            return _with_law(point, first)
        few = point.spec.n <= most
        own = predict_point(point, settings if few else first, seed)
        return own if few or point.spec.heads.count > 2 else own.merge(_laws(point, seed))

    points = experiment.points
    return dict(zip([p.name for p in points], in_threads(terms, points), strict=True))


def _with_law(point: Point, settings: TheorySpec) -> xr.Dataset:
    heads, curve = point.spec.heads, np.linspace(0, 90, 181)
    assert heads.frames is not None  # of this experiment's design
    own = np.broadcast_to(heads.frames.angle, heads.width)
    along = np.repeat(curve[:, None], heads.width, axis=1)
    law, line = (_law(point, np.cos(np.deg2rad(angles))) for angles in (own, along))
    return predict_terms(point.spec.build(), settings).assign(
        law=law, law_curve=("curve_angle", line), curve_angle=curve
    )


def _laws(point: Point, seed: int) -> xr.Dataset:
    """The law at the principal angles of the frames of every problem."""
    frames = np.stack([np.asarray(problem.heads.frames) for problem in members(point, seed)])
    cosines = np.linalg.svd(np.einsum("pdi,pdj->pij", frames[:, 0], frames[:, 1]), compute_uv=False)
    overlap = (PROBLEM, (cosines**2).mean(1))
    return xr.Dataset({"each_law": (PROBLEM, _law(point, cosines)), "each_overlap": overlap})


def canonical(point: Point) -> dict[str, float]:
    """The law at the canonical correlations of two heads whose keys have one variance s²I.

    Theirs is the law of keys N(0, I) with the bandwidth in units of s. The canonical correlation
    and the principal angle, in degrees, are root mean squares over directions.

    Raises:
        ValueError: the projected keys of a head are no multiple of white ones, or not the same
            multiple in both heads.
    """
    problem = point.spec.build()
    frames = np.asarray(problem.heads.frames)
    assert isinstance(problem.task.design, GaussianDesign)  # of this experiment's design
    covariance = np.asarray(problem.task.design.covariance)
    own = np.einsum("hdi,de,hej->hij", frames, covariance, frames)
    if not np.allclose(own, own[0, 0, 0] * np.eye(frames.shape[-1]), rtol=1e-9, atol=1e-12):
        raise ValueError(f"{point.name}: keys of the two heads differ in more than correlation")
    cosines = np.cos(principal_angles(frames[0], frames[1], covariance))
    angles = np.rad2deg(principal_angles(frames[0], frames[1]))
    law = _law(point, cosines, unit=own[0, 0, 0] ** 0.5)
    means = (float(np.sqrt(np.mean(np.square(x)))) for x in (cosines, angles))
    names = ("law", "canonical_correlation", "principal_angle")
    return dict(zip(names, (float(law), *means), strict=True))


def _law(point: Point, cosines: ArrayLike, unit: float = 1.0) -> np.ndarray:
    """The law at the point's bandwidth over ``unit``, the standard deviation of projected keys."""
    heads = point.spec.heads
    bandwidth, scale = np.asarray(heads.bandwidth) / unit, point.spec.queries.scale
    return np.asarray(noise_correlation_law(cosines, bandwidth, scale, heads.kernel))
