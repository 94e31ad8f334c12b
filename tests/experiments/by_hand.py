"""Results made up by hand, and whether an effect is the mean or the ratio that it should be."""

import numpy as np
import pytest

from sims.study.experiment import load_experiment
from sims.study.results import Results

AT = {
    "heads.kernel": "gaussian",
    "heads.bandwidth": 0.5,
    "heads.width": 1,
    "design": "isotropic",
}
"""Coordinates that points have in common."""


def families(name, estimates, predictions, coordinates=None, settings=None):
    """All effects of an experiment by family and label, on results made by hand."""
    module = load_experiment(name).module("effects")
    at = {point: AT | (coordinates or {}).get(point, {}) for point in estimates}
    data = {k: d.assign_attrs(replicates=99) for k, d in estimates.items()}
    results = Results(name, "smoke", data, predictions, settings or {}, at, {}, {})
    return {k: list(v) for k, v in module.effects(results).items()}


def mean_error(values):
    """Mean and standard error of iid values."""
    return np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))


def pseudovalues(statistic, *columns):
    """Jackknife by leaving out one batch after another."""
    count = len(columns[0])
    whole = statistic(*(c.mean(0) for c in columns))
    rest = [statistic(*(np.delete(c, b, 0).mean(0) for c in columns)) for b in range(count)]
    return count * whole - (count - 1) * np.array(rest)


def is_mean_of(effect, values, bound=0.0):
    """Whether value and error are those of iid values, and the bound is as given."""
    mean, error = mean_error(values)
    assert effect.value == pytest.approx(mean, rel=1e-9, abs=1e-9 * error)
    assert effect.error == pytest.approx(error, rel=1e-9)
    assert effect.bound == pytest.approx(bound, rel=1e-6, abs=1e-15)


def is_ratio_of(effect, above, below, less=0.0, sign=1.0, bound=0.0):
    """Whether it is ``sign·(mean above/mean below − less)``; its error by the jackknife."""
    assert effect.value == pytest.approx(sign * (above.mean() / below.mean() - less), rel=1e-9)
    error = mean_error(pseudovalues(lambda a, b: a / b, above, below))[1]
    assert effect.error == pytest.approx(error, rel=2e-2)
    assert effect.bound == pytest.approx(bound, rel=1e-6, abs=1e-15)


def drawn(rng, shared, size=1.0, shape=()):
    """Positive batches that vary by 5 %, half of it with draws that all points share."""
    own = rng.normal(size=(len(shared), *shape))
    common = shared.reshape(-1, *[1] * len(shape))
    return size * (1 + 0.035 * common + 0.035 * own)
