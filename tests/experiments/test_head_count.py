"""The experiment `head_count`: verdicts that can fail, on made-up variances."""

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from tests.experiments.helpers import batches_of, results_of, verdicts

KERNELS = ("gaussian", "softmax")
ORTHOGONAL = [("adding-heads", f"orthogonal heads, everything drawn, {k}") for k in KERNELS]
LITTLE = [
    ("adding-heads", f"little diversity against much{unit}, everything drawn, {kernel}")
    for unit in ("", " in units of one head")
    for kernel in KERNELS
]

ORDERS = {"order": ["first", "exact"]}


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("head_count")


def made(
    experiment,
    correlation=lambda angle: np.cos(np.deg2rad(angle)) ** 2,
    off=1.0,
    error=1e-5,
    miss=1.1,
):
    """Ratios ρ + (1 − ρ)/H of simulation, ``off`` times theory's but for aligned heads.

    First order is off by the factor ``miss``.
    """
    estimates, predictions = {}, {}
    for index, point in enumerate(experiment.points):
        angle, heads = (point.coordinates[k] for k in ("heads.frames.angle", "heads.count"))
        rho = correlation(angle)
        ratio = rho + (1 - rho) / heads
        terms = {"ensemble_variance": 2 * ratio * (off if angle else 1.0), "variance": 2.0}
        data = batches_of(terms, index)
        if rho == 1.0:  # one head, in every batch
            data["ensemble_variance"] = data["variance"]
        truth = {"ensemble_variance": 2 * ratio, "variance": 2.0}
        both = {k: [v * (miss if k != "variance" else 1.0), v] for k, v in truth.items()}
        both |= {f"{k}_error": [np.nan, error * v] for k, v in truth.items()}
        row = xr.Dataset({k: ("order", v) for k, v in both.items()}, ORDERS)
        if point.population is not None:
            sizes = np.exp(np.random.default_rng(index).normal(size=64))
            data = data.assign({k: data[k] * sizes / sizes.mean() for k in truth})
            row = row.assign(
                {
                    f"each_{k}": (("order", "problem"), np.outer(both[k], sizes / sizes.mean()))
                    for k in truth
                }
            )
        few = point.coordinates["population"] == "few keys"
        estimates[point.name] = data
        predictions[point.name] = row if few else row.isel(order=[0])
    return results_of(experiment, estimates, predictions)


def test_a_doubling_removes_a_share_of_what_was_there_before_it(experiment):
    """1 − r(2H)/r(H), for the fixed problem and for the populations of either kernel.

    A fall is of the batches that both points have, which moves it by half a per cent; a share of
    what was left would be off by two.
    """
    results = made(experiment)
    found = experiment.module("effects").effects(results)

    def removed(population, kernel):
        names = {
            point.coordinates["heads.count"]: point.name
            for point in experiment.points
            if point.coordinates["population"] == population
            and point.coordinates["heads.frames.angle"] == 30
            and point.coordinates["heads.kernel"] == kernel
        }
        data = [results.estimates[names[heads]].mean() for heads in sorted(names)[-2:]]
        few, most = (float(d["ensemble_variance"] / d["variance"]) for d in data)
        return (few - most) / few

    (last,) = found["last doubling"]
    assert last.value == pytest.approx(removed(None, "gaussian"), rel=1e-2)
    for kernel, effect in zip(KERNELS, found["last doubling, drawn"], strict=True):
        assert effect.value == pytest.approx(removed("wider angle", kernel), rel=1e-2)


def test_orthogonal_heads_may_be_saturated_and_units_may_matter(experiment):
    """ρ = 0.55 and 0.3: 4.6 % against 11.3 % of what is left, 0.028 against 0.044 of one head."""
    correlation = {0: 1.0, 30: 0.55, 60: 0.4, 90: 0.3}
    verdict = verdicts(experiment, made(experiment, correlation.get))
    assert [verdict[row] for row in (*ORTHOGONAL, *LITTLE)] == [
        *["supported"] * 4,
        *["refuted"] * 2,
    ]
    alike = verdicts(experiment, made(experiment, {**correlation, 90: 0.5}.get))
    assert [alike[row] for row in (*ORTHOGONAL, *LITTLE)] == ["refuted"] * 6


def test_gains_with_and_without_diversity_by_leaving_batches_out(experiment):
    """Values and errors by an explicit jackknife over the problems, both units."""
    results = made(experiment)
    found = experiment.module("effects").effects(results)
    gain = "gain at the least angle over gain of orthogonal heads"
    names = (
        "last doubling of orthogonal heads, drawn",
        f"{gain}, drawn",
        f"{gain}, of one head, drawn",
    )
    for index, kernel in enumerate(KERNELS):
        data = {
            (
                point.coordinates["heads.frames.angle"],
                point.coordinates["heads.count"],
            ): results.estimates[point.name]
            for point in experiment.points
            if point.coordinates["population"] == "wider angle"
            and point.coordinates["heads.kernel"] == kernel
        }

        def by_hand(kept, data=data):
            r = {
                place: float(d["ensemble_variance"][kept].mean() / d["variance"][kept].mean())
                for place, d in data.items()
            }
            gains = [r[angle, 8] - r[angle, 16] for angle in (30, 90)]
            shares = [gains[0] / r[30, 8], gains[1] / r[90, 8]]
            return np.array([shares[1], shares[0] / shares[1], gains[0] / gains[1]])

        every = np.arange(64)
        whole = by_hand(every)
        pseudo = np.array([64 * whole - 63 * by_hand(every != b) for b in every])
        for name, values in zip(names, pseudo.T, strict=True):
            effect = found[name][index]
            assert effect.at == {"kernel": kernel}
            assert effect.value == pytest.approx(values.mean())
            assert effect.error == pytest.approx(values.std(ddof=1) / 8, rel=1e-6)
            assert len(effect.points) == (2 if name == names[0] else 4)
