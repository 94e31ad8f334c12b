"""The experiment `adding_heads`: sub-ensembles, verdicts that can fail, figure and caption."""

from dataclasses import replace

import numpy as np
import pytest

from sims import terms
from sims.study.experiment import load_experiment
from tests.experiments.helpers import check_figure, results_of
from tests.experiments.helpers import verdicts as verdicts_of

BATCHES = 64
COUNT, WIDTH, KIND = "heads.count", "heads.width", "design.correlation"


def made(heads: int, bias: float, variance: float, covariance: float, batches: bool):
    """Terms of exchangeable heads, as a simulation (with a little noise) or as theory."""
    lead = (BATCHES, 1, heads) if batches else (1, heads)
    noise = 1 + 1e-4 * np.random.default_rng(heads).normal(size=(*lead[:-2], 1, 1, 1))
    both = covariance + (variance - covariance) * np.eye(heads)
    pairs = (noise if batches else 1.0) * np.broadcast_to(both, (*lead, heads))
    product = np.full((*lead, heads), bias**2)
    data = terms.assemble(np.full(lead, bias), product, pairs, np.zeros_like(pairs))
    return data if batches else data.assign(n_eff=(("query", "head"), np.full((1, heads), 99.0)))


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("adding_heads")


@pytest.fixture
def results(experiment):
    """The closed form of "Adding heads in practice", with made-up b, v, c, on the real grid."""
    estimates, predictions = {}, {}
    for point in experiment.points:
        heads, width, kind = (point.coordinates[k] for k in (COUNT, WIDTH, KIND))
        variance, bias = 0.01 * width**1.2, 0.3 * width**-0.3
        numbers = (heads, bias, variance, variance * (0.3 + 0.7 * kind))
        estimates[point.name] = made(*numbers, True)
        predictions[point.name] = made(*numbers, False)
    return results_of(experiment, estimates, predictions)


def verdicts(experiment, results):
    return {regime: word for (_, regime), word in verdicts_of(experiment, results).items()}


@pytest.mark.theory
def test_sub_ensembles_follow_the_closed_form(experiment, results):
    errors = experiment.module("effects").Errors(results)
    variance, bias = 0.01 * 4**1.2, 0.3 * 4**-0.3
    assert len(errors.growing(0.0)) == len(errors.fixed(0.0)) == 5
    for ensemble in errors.growing(0.5) + errors.growing(0.0):
        covariance = variance * (0.3 + 0.7 * ensemble.correlation)
        expected = bias**2 + covariance + (variance - covariance) / ensemble.heads
        assert errors.predicted(ensemble) == pytest.approx(expected, rel=1e-12)


def test_claims_hold_where_they_should(experiment, results):
    assert set(verdicts(experiment, results).values()) == {"supported"}


def changed(results, choose, scale):
    """Covariances scaled in the simulated points that are chosen."""
    data = dict(results.estimates)
    for name, at in results.coordinates.items():
        if choose(at):
            d = data[name].copy(deep=True)
            d["integrated_signal_covariance"] = d["integrated_signal_covariance"] * scale
            data[name] = d
    return replace(results, estimates=data)


def test_verdicts_can_fail(experiment, results):
    worse = verdicts(experiment, changed(results, lambda at: at[KIND] == 0.0, 3.0))
    assert worse["fixed D, diverse against aligned"] == "refuted"
    assert worse["theory"] == "refuted"
    # One wide head is half variance: 1.05 times that is 2.5 % of the error.
    slightly = verdicts(experiment, changed(results, lambda at: at[WIDTH] == 16, 1.05))
    assert slightly["theory"] == "supported"
    # Diverse heads under the name of aligned ones.
    names = {
        (at[COUNT], at[WIDTH], at[KIND]): name
        for name, at in results.coordinates.items()
        if at["population"] is None
    }
    swapped = dict(results.estimates)
    a, b = names[16, 4, 0.0], names[16, 4, 1.0]
    swapped[a], swapped[b] = swapped[b], swapped[a]
    wrong = verdicts(experiment, replace(results, estimates=swapped))
    assert wrong["growing D, aligned heads"] == "refuted"
    assert wrong["growing D, diverse heads"] != "supported"


def test_the_share_of_variance_is_that_of_the_ensemble(experiment, results):
    effects = experiment.module("effects").effects(results)["gap to first order"]
    one = next(effect for effect in effects if effect.label == "1 diverse of width 4")
    variance, bias = 0.01 * 4**1.2, 0.3 * 4**-0.3
    assert one.at["variance_share"] == pytest.approx(variance / (variance + bias**2))


def test_aligned_views_are_one_head():
    """By theory, on the real grid: the error of aligned heads is that of the first."""
    from sims.theory import predict

    smoke = load_experiment("adding_heads", "smoke")
    point = smoke.points[1]
    assert point.coordinates[KIND] == 1.0
    data = predict(*point.spec.build())
    error = smoke.module("effects")._error
    assert error(data, 8) == pytest.approx(float(error(data, 1)), rel=1e-9)


def test_figure_and_caption(experiment, results):
    assert "cost 16 times as much as one" in " ".join(check_figure(experiment, results).split())


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_rows_on_populations_can_fail_alone(experiment, results, kernel):
    """Diverse heads of a population under the name of aligned ones, and the other way round."""
    names = {
        (at[COUNT], at[WIDTH], at[KIND]): name
        for name, at in results.coordinates.items()
        if at["population"] and at["heads.kernel"] == kernel
    }
    a, b = names[16, 4, 0.0], names[16, 4, 1.0]
    own = results.estimates
    before = verdicts(experiment, results)
    after = verdicts(experiment, replace(results, estimates={**own, a: own[b], b: own[a]}))
    assert {regime for regime in before if before[regime] != after[regime]} == {
        f"growing D, everything drawn, {kernel}",
        f"fixed D, everything drawn, {kernel}",
    }
    assert after[f"fixed D, everything drawn, {kernel}"] == "refuted"


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
def test_a_split_that_is_no_better_than_an_end_is_refuted(experiment, results, kernel):
    """Four heads of so much more variance that they still do better than one wide head."""

    def chosen(at):
        drawn = at["population"] is not None and at["heads.kernel"] == kernel
        return drawn and (at[COUNT], at[WIDTH], at["n"]) == (4, 4, 1024)

    before, after = (
        verdicts(experiment, results),
        verdicts(experiment, changed(results, chosen, 4.4)),
    )
    row = f"fixed D, a split between, {kernel}"
    assert {regime for regime in before if before[regime] != after[regime]} == {row}
    assert after[row] == "refuted"
