"""Assertions of :mod:`sims.testing`, in a repository of somebody else's and on made-up numbers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.signal import lfilter

from sims import DESIGNS, TARGETS, Heads, Task, estimate, predict
from sims.base.errors import InputError
from sims.testing import (
    DependentBatches,
    assert_agree,
    assert_bound,
    assert_order,
    assert_rate,
    on_problems,
)

ROOT = Path(__file__).parents[1]
FOREIGN = """
import numpy as np
import pytest
import sims
from sims import testing
from sims.problem import Kernel

class Law:
    def draw(self, seed, index):
        rng = np.random.default_rng([seed, index])
        return {"slope": rng.uniform(0.1, 0.4), "noise": rng.uniform(0.5, 2)}

def exponential(query, key, bandwidth):  # log K, a kernel of our own
    return key.sum(0) / bandwidth

KERNEL = Kernel("exponential", exponential)

def simulated(problem):
    task = sims.Task(sims.DESIGNS["isotropic"](2), sims.TARGETS["constant"](2), problem["noise"])
    heads = sims.Heads(np.eye(2)[None], KERNEL, 1 / problem["slope"])
    return sims.estimate(task, heads, 2048, np.zeros((1, 2)), seed=1, batches=32,
                         replicates_per_batch=8)

def check(problem, constant):
    data, s, variance = simulated(problem), problem["slope"], problem["noise"] ** 2 / 2048
    closed = constant * variance * np.exp(2 * s**2)  # to first order in 1/n
    testing.assert_agree(data["noise_variance"].values, closed, within=0.005)
    testing.assert_bound(data["noise_variance"].values, at_least=variance)

@testing.on_problems(Law(), 8)
def test_noise_variance(problem):
    check(problem, 1.0)

@testing.on_problems(Law(), 3, seed=7)
def test_a_wrong_constant(problem):
    check(problem, 1.02)
"""


def test_in_a_foreign_repository(tmp_path):
    """A kernel, closed form and bound of its own, on 8 problems; a constant wrong by 2 % fails."""
    (tmp_path / "test_mine.py").write_text(FOREIGN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers"]
    surroundings = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True)
    printed = done.stdout
    assert "3 failed, 8 passed in " in printed, printed
    assert re.search(
        r"value: simulated 0\.\d+ ± \S+, expected 0\.\d+; \d+\.\d standard errors beyond agreement "
        r"within 0\.005 \(p = \S+, 1 entries, false alarms 1e-06; a gap from \S+ on fails\); "
        r"again: pytest 'test_mine\.py::test_a_wrong_constant\[2\]'",
        printed,
    )


@pytest.mark.parametrize("law", ["standard_normal", "standard_exponential"])
def test_false_alarms_are_as_rare_as_stated(law):
    """Of 1,000 true statements on 20 entries each, 5 % where so many are allowed, else none."""
    rng, alarms = np.random.default_rng(2), {0.05: 0, 1e-6: 0}
    mean = 0.0 if law == "standard_normal" else 1.0
    for _ in range(1000):
        batches = getattr(rng, law)((32, 20, 16)).mean(-1)
        for rate in alarms:
            try:
                assert_agree(batches, np.full(20, mean), false_alarm=rate)
            except AssertionError:
                alarms[rate] += 1
    assert 20 <= alarms[0.05] <= 80
    assert alarms[1e-6] == 0


NOISE = np.random.default_rng(3).standard_normal((64, 3)) * 0.01
X = np.array([1.0, 2.0, 4.0])
STATEMENTS = [
    (
        assert_agree,
        (NOISE + 1, [1.0, 1.0, 1.02], 0.03),
        (NOISE + 1, [1.0, 1.0, 1.02]),
        "value at (2,)",
    ),
    (assert_agree, ((1.0, 0.01), 1.03), ((1.0, 0.001), 1.03), "30.0 standard errors"),
    (assert_agree, (NOISE, [0.0, 0.0, 0.0]), (NOISE, [0.0, np.nan, 0.0]), "value at (1,)"),
    (assert_order, (NOISE, NOISE + 1e-9), (NOISE + 1e-9, NOISE), "lower − higher"),
    (assert_rate, (X, X**-1 + NOISE, -1, 0), (X, X**-1.2 + NOISE, -1, 0), "slope: simulated -1.2"),
    (assert_rate, (X, X**-1.05 + NOISE, -1), (X, X**-1.3 + NOISE, -1), "slope: simulated -1.3"),
]


@pytest.mark.parametrize(("check", "true", "false", "words"), STATEMENTS)
def test_true_and_false_statements(check, true, false, words):
    check(*true)
    with pytest.raises(AssertionError) as caught:
        check(*false)
    assert words in str(caught.value)


def test_bounds_and_what_cannot_be_judged():
    assert_bound(NOISE, at_least=-0.01, at_most=0.01)
    with pytest.raises(AssertionError, match=r"expected 0\.5; "):
        assert_bound(NOISE, at_least=[-1, 0.5, -1])
    with pytest.raises(InputError, match="2 batches or more"):
        assert_bound(NOISE[:1], at_most=1)


BATCHES = ("batch", 1 + NOISE[:, 0])
UNFIT = [
    ({"faults": "lost in rounding"}, {}, "simulated: faults: lost in rounding"),
    ({}, {"faults": "beyond float64\nand more"}, "predicted: faults: beyond float64; and more"),
    ({}, {"n": 128}, "different problems: n 64 and 128"),
    ({"problem": "a"}, {"problem": "b"}, "different problems: problem a and b"),
    ({}, {"mse": np.nan, "mse_error": np.nan}, "mse: simulated 1.0"),
    ({"mse": ("batch", np.full(64, np.nan))}, {}, "mse: simulated nan"),
    ({}, {"mse_error": np.inf}, "mse_error: got inf; allowed: a finite bound"),
    ({}, {"mse_error": -1.0}, "mse_error: got -1.0; allowed: a finite bound"),
]


def changed(data, change):
    """The dataset with other variables (of names that begin with mse) or attributes."""
    for name, value in change.items():
        data = data.assign({name: value}) if "mse" in name else data.assign_attrs({name: value})
    return data


@pytest.mark.parametrize(("of_simulated", "of_predicted", "words"), UNFIT)
def test_datasets_that_cannot_agree(of_simulated, of_predicted, words):
    """Nothing passes by a number that is missing, unusable or of something else."""
    simulated = xr.Dataset({"mse": BATCHES}, attrs={"n": 64})
    predicted = xr.Dataset({"mse": 1.0, "mse_error": 0.01}, attrs={"n": 64})
    assert_agree(simulated, predicted)
    with pytest.raises((AssertionError, InputError)) as caught:
        assert_agree(changed(simulated, of_simulated), changed(predicted, of_predicted))
    assert words in str(caught.value)


def test_predictions_of_another_problem_or_of_one_head():
    task = Task(DESIGNS["isotropic"](2), TARGETS["constant"](2), 1.0)
    heads = Heads(np.eye(2)[None], "gaussian", 1.0)
    problem = (task, heads, 256, [[0.0, 0.1]])
    simulated = estimate(*problem, 0, batches=8, replicates_per_batch=8)
    gaps = assert_agree(simulated, predict(*problem), within=0.5)
    assert "covariance" not in gaps  # there is no pair
    with pytest.raises(AssertionError, match="different problems: inputs"):
        assert_agree(simulated, predict(task, heads, 256, [[0.0, 0.2]]), within=0.5)


RANGES = [
    *((assert_agree, (NOISE, 0.0), {"false_alarm": rate}) for rate in (0, -1, 1, np.nan, 1e-300)),
    *((assert_bound, ((1.0, error),), {"at_most": 1}) for error in (-9, np.inf, np.nan)),
    *((assert_agree, (NOISE, 0.0), {"within": within}) for within in (np.inf, -0.1)),
    (assert_bound, (NOISE,), {"at_most": np.nan}),
    (assert_order, (NOISE, NOISE[:9]), {}),
    (assert_agree, (NOISE[:, :0], []), {}),
]


@pytest.mark.parametrize(("check", "arguments", "options"), RANGES)
def test_arguments_have_ranges(check, arguments, options):
    with pytest.raises(InputError):
        check(*arguments, **options)


def test_the_smallest_gap_that_fails_is_said():
    batches = np.random.default_rng(7).standard_exponential((16, 2))
    mean = batches.mean(0)
    gap = assert_agree(batches, mean)["value"] * [0, 1]
    assert_agree(batches, mean + 0.999 * gap)
    with pytest.raises(AssertionError, match=rf"a gap from {gap[1]:.2g} on fails"):
        assert_agree(batches, mean + 1.001 * gap)


def test_terms_of_both_methods():
    batches = 1 + NOISE.T  # of one entry each
    simulated = xr.Dataset({"mse": ("batch", batches[0]), "variance": ("batch", batches[1])})
    predicted = xr.Dataset({"mse": 1.0, "variance": 1.1, "variance_error": 0.2, "bias": 0.0})
    assert_agree(simulated, predicted)
    with pytest.raises(AssertionError, match=r"^variance: simulated"):
        assert_agree(simulated, predicted.drop_vars("variance_error"))
    for terms in (["bias"], ["mse", "bias"]):
        with pytest.raises(InputError, match="terms: got 'bias'; allowed: mse, variance"):
            assert_agree(simulated, predicted, terms=terms)


THIRD = 0.1 + 0.2
EQUAL = [
    (assert_agree, (np.full((50, 2), THIRD * 1e9), [3e8, 3e8])),
    (assert_agree, (np.full(50, 0.1, np.float32), 0.1)),
    (assert_agree, (np.arange(20) % 2 * 5e-17 + THIRD, 0.3)),  # varies by rounding
    (assert_order, (np.full(50, THIRD), np.full(50, 0.3))),
    (assert_rate, (X, np.tile(X**-0.7 / 3, (8, 1)), -0.7, 0)),
]


@pytest.mark.parametrize(("check", "arguments"), EQUAL)
def test_rounding_is_no_evidence(check, arguments):
    check(*arguments)
    assert_bound(np.full(50, THIRD), at_most=0.3)
    with pytest.raises(AssertionError):
        assert_agree(np.full(50, 0.3 + 1e-12), 0.3)


WALK = lfilter([0.01], [1, -0.95], np.random.default_rng(5).standard_normal((64, 3)), axis=0)


@pytest.mark.parametrize(
    ("check", "arguments"),
    [
        (assert_agree, (WALK, [0, 0, 0])),
        (assert_bound, (WALK[::2],)),
        (assert_order, (WALK, 0 * WALK)),
        (assert_rate, (X, X**-1 * (1 + WALK), -1, 0)),
        (assert_agree, (np.repeat(1 + NOISE, 2, axis=0), [1, 1, 2])),
    ],
)
def test_dependent_batches_are_named(check, arguments):
    limit = {"at_most": -0.1} if check is assert_bound else {}
    with pytest.raises(DependentBatches, match="depend on one another"):
        check(*arguments, **limit)


@pytest.mark.parametrize(
    ("law", "count", "words"),
    [
        ({}, 0, "count: got 0; allowed: an integer >= 1"),
        ("no.yaml", 2, "law: got 'no.yaml'; allowed: fields"),
        ({"b": {"uniform": [1]}}, 1, r"law.b.uniform: got [1]; allowed: [low, high]"),
    ],
)
def test_problems_that_cannot_be_drawn(law, count, words):
    with pytest.raises(InputError, match=re.escape(words)):
        on_problems(law, count)
