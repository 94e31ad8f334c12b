"""The experiment `hierarchy`: its rows can turn, its searches end, its counts count."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.experiments.runs import both_roads, small

WITH_THEORY = ("T=", "cost", "semidefinite", "truncation", "ranks", "mixture")


@pytest.fixture(scope="module")
def experiment():
    return small("hierarchy", batches=8, replicates_per_batch=2)


@pytest.fixture(scope="module")
def results(experiment):
    return both_roads(experiment, lambda point: point.startswith(WITH_THEORY))


def test_searches_end_at_the_smallest_case(results, experiment):
    families = experiment.module("effects").effects(results)
    found = {
        name: families[f"search, {name}"][0].label
        for name in ("strict", "leak", "needless", "needless, long", "dear", "full rank")
    }
    assert found == {
        "strict": "smallest: strict T=3 d=1 L=2",
        "leak": "smallest: leak T=4 d=1 L=2",
        "needless": "smallest: needless T=1 d=1 L=2",
        "needless, long": "smallest: needless, long T=6 d=2 L=3",
        "dear": "smallest: dear T=2 d=1 L=3",
        "full rank": "none at 7 sizes",
    }


def test_multiplications_of_known_products(experiment):
    simulate = experiment.module("simulate")
    a, b = np.ones((2, 3)), np.ones((3, 5))
    assert simulate.multiplications(lambda x, y: x @ y, a, b) == 30
    assert simulate.multiplications(lambda x, y: (x @ y) @ y.T, a, b) == 60


def test_sampled_effects_are_near_what_they_should_be(results, experiment):
    families = experiment.module("effects").effects(results)
    for name in ("share semidefinite", "mixture over theory", "mean square of ranks"):
        for effect in families[name]:
            assert abs(effect.value) <= 8 * effect.error + 0.005, (name, effect.label)


def test_predictions_by_hand(experiment):
    laws = experiment.module("predict").predict(experiment)
    assert float(laws["T=16 d=3 L=3"]["pairs"]) == 27
    assert float(laws["cost T=20 L=4 T/d=1"]["rounded"]) == (400 + 100 + 25 + 9) / 400
    assert float(laws["semidefinite d=2 d_k=3"]["two"]) == pytest.approx(1 / 64)
    np.testing.assert_allclose(laws["truncation, single scale"]["tail"], [1, 1, 1, 1, 0, 0, 0, 0])
    far = laws["mixture, far scales"]
    np.testing.assert_allclose(far["correlation"], [0.6, 0.6, 0.36 / 1.64], rtol=1e-12)
    assert float(far["convex"].max()) <= 1e-12 < 0.5 < float(far["signed"].min())


def test_drawn_mixtures_err_as_the_arms_of_one_query_do(experiment):
    """The same generator gives keys, query, phase, noise; each arm by loops over its weights."""
    simulate = experiment.module("simulate")
    own = experiment.settings["mixture"] | {"draws": 3, "n": 5}
    draw = SimpleNamespace(rng=lambda: np.random.default_rng(3))
    found = simulate.drawn_mixtures(own, draw, 2, None)["mse"]
    rng, count = np.random.default_rng(3), 6
    keys = rng.normal(size=(count, 5, 2))
    at = 0.6 * rng.normal(size=(count, 1, 2))
    phase = rng.uniform(0, 2 * np.pi, (count, 1))
    labels = np.cos(keys[..., 0] + phase) + 0.5 * rng.normal(size=(count, 5))
    errors = np.zeros(3)
    h, share = own["bandwidths"], own["weights"]
    mean = sum(s * b**2 for s, b in zip(share, h, strict=True))
    for k in range(count):
        gaps = ((keys[k] - at[k]) ** 2).sum(1)
        kernels = [np.exp(-gaps / (2 * b**2)) for b in h]
        scores = np.prod([kernel**s for kernel, s in zip(kernels, share, strict=True)], axis=0)
        outputs = sum(s * kernel / kernel.sum() for kernel, s in zip(kernels, share, strict=True))
        single = np.exp(-gaps / (2 * mean))
        truth = np.cos(at[k, 0, 0] + phase[k, 0])
        arms = (scores / scores.sum(), outputs, single / single.sum())
        errors += [(arm @ labels[k] - truth) ** 2 / count for arm in arms]
    np.testing.assert_allclose(found, errors, rtol=1e-12)


@pytest.mark.parametrize(("name", "arm"), [("loss of outputs", 2), ("gain over scores", 0)])
def test_mixtures_are_compared_by_ratios_of_mean_errors(results, experiment, name, arm):
    point = "drawn mixture, far scales"
    data = results.estimates[point]
    errors = data["mse"].values
    family = experiment.module("effects").effects(results)[name]
    effect = next(e for e in family if e.at["mixture"] == "far scales")
    ratio = errors[:, arm].mean() / errors[:, 1].mean() - 1
    assert effect.value == pytest.approx(ratio, abs=2 * effect.error)
    parts = errors[:, arm] / errors[:, 1].mean() - (1 + ratio) * errors[:, 1] / errors[:, 1].mean()
    assert effect.error == pytest.approx(parts.std(ddof=1) / len(parts) ** 0.5, rel=0.3)
