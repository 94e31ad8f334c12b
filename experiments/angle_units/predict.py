"""First-order theory of all pairs of lines, and the angle law beside what it could be taken for."""

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from sims.runtime import in_threads
from sims.study.experiment import Experiment, Point
from sims.study.population import members
from sims.study.roads import predict_terms
from sims.theory import noise_correlation_law


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """A point's first-order terms; of a population ``law``, or its covariances.

    Keys N(0, Σ): all terms of :func:`sims.theory.predict`. Targets of one direction: the
    ``integrated_signal_covariance`` and ``integrated_noise_covariance`` (head, head2), means over
    problems. Prescribed angles: ``law``, ``linear`` and ``alternative_gap`` (line), of the
    first line with each other. Keys on a cube: ``floor``, the law at 90° if keys were N(0, I).
    """
    first = experiment.theory.model_copy(update={"order": "first"})
    seed = experiment.simulation.seed

    def one(point: Point) -> xr.Dataset:
        if point.population is None:
            if point.spec.design.kind == "cube":
                return xr.Dataset({"floor": floor(point)})
            return predict_terms(point.spec.build(), first)
        if point.spec.target.kind == "constant":
            return laws(point)
        each = [predict_terms(problem, first) for problem in members(point, seed)]
        names = [f"integrated_{part}_covariance" for part in ("signal", "noise")]
        return xr.Dataset({name: sum(data[name] for data in each) / len(each) for name in names})

    points = experiment.points
    return dict(zip([p.name for p in points], in_threads(one, points), strict=True))


def laws(point: Point) -> xr.Dataset:
    """The law of the first line with each other one, and how far the nearest alternative is.

    Alternatives, of 1 − ρ, relative to the law's: ``linear``, a correlation in each direction that
    is linear in cos² θ between the law's own ends, (1 − (1 − ρ₉₀) sin² θ)^{d_k}; and the law of
    the other kernel at this bandwidth, where it is finite.
    """
    heads, scale = point.spec.heads, point.spec.queries.scale
    assert heads.frames is not None  # of this experiment's design
    start, *others = heads.frames.angles
    angles = np.deg2rad(np.asarray(others) - start)
    bandwidth = np.asarray(heads.bandwidth)
    law = correlation(angles, heads.width, bandwidth, scale, heads.kernel)
    linear = (1 - (1 - floor(point)) * np.sin(angles) ** 2) ** heads.width
    alternatives = [linear]
    if heads.kernel == "softmax":
        alternatives.append(correlation(angles, heads.width, bandwidth, scale, "gaussian"))
    gaps = [np.abs((1 - other) / (1 - law) - 1) for other in alternatives]
    data = {"law": law, "linear": linear, "alternative_gap": np.min(gaps, axis=0)}
    return xr.Dataset({k: ("line", v) for k, v in data.items()}, {"line": np.asarray(others)})


def floor(point: Point) -> float:
    """The angle law at 90° in one direction, at the point's kernel, bandwidth and queries."""
    heads, scale = point.spec.heads, point.spec.queries.scale
    bandwidth = np.asarray(heads.bandwidth)
    return float(correlation(np.deg2rad([90.0]), 1, bandwidth, scale, heads.kernel)[0])


def correlation(
    angles: np.ndarray, width: int, bandwidth: ArrayLike, scale: float, kernel: str
) -> np.ndarray:
    """The angle law at one angle in all d_k directions, radians."""
    cosines = np.repeat(np.cos(angles)[:, None], width, axis=1)
    return np.asarray(noise_correlation_law(cosines, bandwidth, scale, kernel))
