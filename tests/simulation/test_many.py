"""Many problems in one program: each is what it is alone."""

import numpy as np

from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.simulation import estimate
from sims.simulation.many import estimate_many
from tests.by_hand import refused

QUERIES = np.array([[0.1, -0.4, 0.2], [0.5, 0.0, -0.2]])
SAMPLING = {"replicates_per_batch": 4, "batches": 3, "keep_queries": False}


def problem(seed=0, n=24, kernel="gaussian", noise=0.5, target="rbf", bandwidth=0.8):
    task = Task(DESIGNS["isotropic"](3), TARGETS[target](3, seed=seed), noise)
    return task, Heads(FRAMES["haar"](3, 2, 1, seed), kernel, bandwidth), n, QUERIES


PROBLEMS = [
    problem(0),
    problem(1, kernel="softmax"),
    problem(2, noise=1.0, bandwidth=0.6),
    problem(3, n=40),
    problem(4, target="constant"),
    problem(5, kernel="epanechnikov", bandwidth=0.3),
]


def test_each_problem_is_that_of_its_own_run():
    streams = [(k,) for k in range(len(PROBLEMS))]
    many = estimate_many(PROBLEMS, 7, streams, **SAMPLING)
    assert many["problem"].values.tolist() == [0, 1, 2, 3, 4, 5]
    for place, own in enumerate(PROBLEMS):
        alone = estimate(*own, 7, stream=(place,), **SAMPLING)
        for name, values in alone.data_vars.items():
            there = many[name].isel(problem=place)
            np.testing.assert_allclose(there, values, rtol=1e-6, atol=1e-12, err_msg=str(name))
        for name in ("faults", "cautions"):
            assert str(many[name].values[place]) == alone.attrs.get(name, "").replace("\n", "; ")
        assert float(many["rounding"][place]) == alone.attrs["rounding"]


def test_without_streams_problems_share_their_draws():
    """The same problem twice has the same batches; another stream has others."""
    same = estimate_many([PROBLEMS[0]] * 2, 7, **SAMPLING)["mse"].values
    np.testing.assert_array_equal(same[:, 0], same[:, 1])
    other = estimate_many([PROBLEMS[0]] * 2, 7, [(), (1,)], **SAMPLING)["mse"].values
    assert (other[:, 0] != other[:, 1]).all()


def test_an_impossible_problem_is_named():
    wrong = (*problem()[:2], 0, QUERIES)
    with refused("problem 1: n: got 0"):
        estimate_many([PROBLEMS[0], wrong], 7, **SAMPLING)
