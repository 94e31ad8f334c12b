"""The house sample: what is solved for a problem, and both roads' problems."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
import yaml

from experiments.house import predict, problems, sets
from experiments.house.study import House
from sims.problem import Heads
from sims.problem.law import Law
from sims.study import load_experiment
from sims.study.schema import SimulationSpec
from sims.study.study import Fields
from sims.theory import predict as theory
from tests.cli.small import run

SPEC, SEED = load_experiment("house").spec, 8
STUDY = House(SimpleNamespace(spec=SPEC, settings={}, simulation=SimulationSpec(seed=SEED)))


@pytest.fixture(scope="module")
def drawn():
    return [STUDY.draw(number) for number in range(6)]


def test_label_noise_gives_the_drawn_share_of_variance(drawn):
    free = [p for p in drawn if not p.parameters["tuned"]]
    for problem in free:
        terms = theory(problem.task, problem.sets[sets.HAAR], problem.n, problem.queries)
        share = float(terms["ensemble_variance"] / terms["mse"])
        assert share == pytest.approx(problem.parameters["share"], rel=1e-9)
    assert free


def test_a_tuned_bandwidth_is_a_minimum(drawn):
    """Its neighbours on the grid have no smaller mean error over the sets."""
    inside = [p for p in drawn if p.parameters["tuned"] and not p.parameters["edge"]]
    step = problems.GRID[1] / problems.GRID[0]
    for problem in inside:

        def error(factor, problem=problem):
            """Of the labelled predictions, summed over the sets."""
            heads = [
                Heads(h.frames, h.rule, h.bandwidth * factor, h.key_frames) for h in problem.sets
            ]
            case = problem.n, problem.queries
            return sum(float(theory(problem.task, each, *case)["mse"]) for each in heads)

        least, *others = map(error, (1, step, 1 / step))
        assert least <= min(others)
    assert inside


def test_padded_problems_matrices_and_what_a_search_sees_are_those_of_the_problem(drawn):
    for number, problem in enumerate(drawn[:2]):
        result = predict.predicted(problem, 2)
        heads = problem.parameters["heads"]
        for place, each in enumerate(problem.sets):
            terms = theory(problem.task, each, problem.n, problem.queries)
            pairs = {"bias": "bias_product", "signal": "signal_covariance"}
            for name, pair in (pairs | {"noise": "noise_covariance"}).items():
                mine = result[name].values[place, :heads, :heads]
                np.testing.assert_allclose(mine, terms[f"integrated_{pair}"], rtol=1e-8, atol=1e-14)
        fields = Law(STUDY.law).draw(SEED, number, problem.parameters["rejected"])
        again = STUDY.search_row(STUDY.problem(Fields(fields, SEED)))
        unlike = ["mean_bias", "mean_signal", "rejected", "by_angles", "exact"]
        xr.testing.assert_allclose(again.drop_vars(unlike), result[[*again.drop_vars(unlike)]])


def test_a_counterexample_is_a_file_that_runs(drawn, tmp_path, monkeypatch):
    """Its first-order errors are those of the problem's sets."""
    file = STUDY.file_of(2) | {"simulation": {"batches": 2, "replicates_per_batch": 2}}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found.yaml").write_text(yaml.safe_dump(file))
    assert run("sweep", "found.yaml") == 0
    with xr.open_dataset("results/sweeps/found.nc") as data:
        problem = drawn[2]
        errors = [
            float(theory(problem.task, each, problem.n, problem.queries)["mse"])
            for each in problem.sets
        ]
        np.testing.assert_allclose(data["mse_theory"], errors, rtol=1e-9)
