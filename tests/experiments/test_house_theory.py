"""Theory of the house law at the fixed queries, what heads cover, and pilots drawn once."""

import numpy as np
import pytest
import xarray as xr

from experiments.house import decomposition, predict
from experiments.house.reach import gaps
from experiments.house.simulate import at_fixed_queries
from experiments.house.study import House
from sims.base.estimates import mcse
from sims.study.running import Run
from tests.experiments.drawing import short_house
from tests.experiments.test_battery import tiny

pytestmark = pytest.mark.theory


def study_of(**changes):
    """The house study with some of its law changed, and pilots of few queries."""
    experiment = Run.load("house", "smoke")
    content = experiment.study.declared.content
    law = content["law"] | {"keys": 64, "size": [[8, 2, 4]]} | changes
    study = House(law, content["questions"])
    return study.opened(experiment.settings, experiment.simulation)


@pytest.fixture(autouse=True)
def short_pilots():
    with short_house():
        yield


@pytest.mark.parametrize(
    ("family", "kernel"),
    [
        ("decaying", "gaussian"),
        ("student", "softmax"),
        ("sphere", "gaussian"),
        ("clusters", "softmax"),
        ("digits", "gaussian"),
    ],
)
def test_both_methods_agree_at_the_fixed_queries(family, kernel):
    """Every term within four standard errors, of which theory states its own."""
    problem = study_of(family=family, kernel=kernel, apart=True).draw(0)
    simulated = at_fixed_queries(problem, 3)
    theory = predict.exact(problem)
    assert mcse(simulated["fixed_mse"].values) < 0.011 * theory["theory_mse"]
    for name in decomposition.TERMS:
        values = simulated[f"fixed_{name}"].values
        stated = theory[f"theory_{name}_error"] / 2
        error = np.hypot(mcse(values), stated)
        assert abs(values.mean() - theory[f"theory_{name}"]) < 4 * error, name


def test_gaps_are_in_units_of_both_errors():
    """Over problems that both methods get right, gaps over their errors have variance one."""
    rng = np.random.default_rng(4)
    count, batches = 400, 16
    truth = rng.uniform(1, 2, size=count)
    stated = 0.02 * truth
    estimates = {}
    for number, value in enumerate(truth):
        draws = value * (1 + 0.05 * rng.normal(size=batches))
        terms = {f"fixed_{name}": ("round", draws) for name in decomposition.TERMS}
        estimates[f"{number:04d}"] = xr.Dataset(terms)
    law = {
        f"theory_{name}": truth + stated * rng.normal(size=count) for name in decomposition.TERMS
    }
    law |= {f"theory_{name}_error": 2 * stated for name in decomposition.TERMS}
    law = xr.Dataset({name: ("number", values) for name, values in law.items()})
    law["query_first"] = (("number", "query"), truth[:, None])
    made = gaps(estimates, law)
    for name in ("mse", "bias", "variance"):
        z = made[name].value / made[name].error
        assert z.std() == pytest.approx(1, abs=0.12), name
        half = made[name].half(0)
        assert (half.value / half.error).std() == pytest.approx(1, abs=0.2), name


def test_less_is_unseen_than_the_error_at_any_number_of_keys():
    """And coverage is between none and all of the target."""
    problem = study_of(family="isotropic", shifted=False).draw(0)
    found = predict.limits(problem)
    assert 0 < found["coverage"] < 1
    assert 0 < found["coverage_aligned"] < 1
    assert found["unseen"] < (1 - problem.skill) * problem.variance


def test_a_pilot_is_drawn_once_for_both_methods(tmp_path, monkeypatch):
    """The second study reads what the first one kept, and draws what it did not."""
    run = tiny("house")
    first, second = (run.study.opened(run.settings, run.simulation) for _ in range(2))
    first.keep_draws(tmp_path)
    second.keep_draws(tmp_path)
    drawn = first.draw(0)
    assert any("-pilot-" in path.name for path in (tmp_path / ".drawn").glob("0000.*.npz"))
    module = second.problem.__func__.__globals__["draw_problem"].__globals__

    def fail(*_):
        raise AssertionError("the pilot is drawn again")

    monkeypatch.setitem(module, "tune", fail)
    again = second.draw(0)
    np.testing.assert_array_equal(again.bandwidth, drawn.bandwidth)
    np.testing.assert_array_equal(again.keys, drawn.keys)
    with pytest.raises(AssertionError, match="drawn again"):
        second.draw(1)
