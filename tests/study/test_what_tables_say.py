"""What tables say of keys, of how far two runs are apart, and of what a run takes."""

import numpy as np
import pytest
import xarray as xr

from sims.effects import Effect
from sims.study import planning
from sims.study.comparing import _effects_apart
from sims.study.planning import Cost, cost, described
from sims.study.results import Results
from sims.study.schema import SimulationSpec
from sims.study.sweepfile import DecomposeSpec
from sims.study.sweeping import row
from sims.terms import SCALARS
from sims.validation import parse
from tests.cli.small import SPEC

KEYS = np.array([[12.0, 30.0], [20.0, 50.0], [8.0, 60.0]])


def test_a_table_gives_the_mean_of_effective_keys():
    estimate = xr.Dataset({"mse": ("batch", [1.0, 2.0]), "mse_mcse": 0.5}, attrs={"replicates": 8})
    theory = xr.Dataset({"mse": 1.4, "n_eff": (("query", "head"), KEYS)})
    results = Results("e", "smoke", {"p": estimate}, {"p": theory}, {}, {"p": {"n": 64}}, {}, {})
    own = results.table().iloc[0]
    assert own["n_eff"] == pytest.approx(30)  # (12 + 30 + 20 + 50 + 8 + 60)/6
    assert (own["mse"], own["mse_theory"], own["replicates"], own["n"]) == (1.5, 1.4, 8, 64)


def test_a_sweeps_row_gives_the_mean_and_the_least_of_keys():
    """Of the third moment the least alone, which is where first-order theory fails first."""
    attrs = {"empty_rate": 0.0, "rounding": 0.0, "batches": 2, "replicates": 8}
    estimate = xr.Dataset({name: ("batch", [1.0, 2.0]) for name in SCALARS}, attrs=attrs)
    estimate = estimate.assign({f"{name}_mcse": 0.5 for name in SCALARS})
    at = ("query", "head")
    theory = xr.Dataset({"n_eff": (at, KEYS), "n_third": (at, KEYS - 1)}, attrs={"faults": ["f"]})
    found = row(estimate, theory, "first")
    assert (found["n_eff"], found["n_eff_least"]) == (pytest.approx(30), 8)
    assert found["n_third"] == 7
    assert found["faults"] == "f"
    assert np.isnan(row(estimate, None, "first")["n_third"])


@pytest.mark.parametrize(("difference", "beyond"), [(7.0, 0), (9.9, 0), (10.1, 1), (-10.1, 1)])
def test_effects_are_beyond_that_are_more_than_two_joint_errors_apart(difference, beyond):
    """Errors of 3 and 4 are a joint one of 5."""
    one = {"a": Effect("a", 1.0, 3.0), "b": Effect("b", 1.0, 3.0), "c": Effect("c", 0.0, 0.0)}
    other = {"a": Effect("a", 1.0 + difference, 4.0), "b": Effect("b", 1.0, 4.0), "c": one["c"]}
    found = _effects_apart("e", one, other)
    assert (found.compared, found.beyond, found.where) == (2, beyond, "a")
    assert found.worst == pytest.approx(abs(difference) / 5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rel_mcse": 0.1}, "about 1 h, up to 4 h on 3 cores"),
        ({"decide": "equal"}, "about 1 h, up to 4 h on 3 cores"),
        ({}, "about 1 h on 3 cores"),
    ],
)
def test_a_run_that_may_go_on_takes_up_to_as_many_times_longer(monkeypatch, options, words):
    """Of 8 batches up to 32, where something may ask for them; two points of half an hour each."""
    monkeypatch.setattr(planning, "host_devices", lambda: 3)
    one = Cost(("shape",), 1800 * 3 * planning.RATE, 0, 0)
    settings = SimulationSpec(batches=8, max_batches=32, replicates_per_batch=4, **options)
    lines = described([one, one], settings)
    assert lines[2].startswith(f"simulation   {words},")
    most = ", up to 128 until" if options else ""
    assert f"32 a point (8 batches of 4){most}" in lines[1]


def test_results_by_query_need_room_for_every_query():
    """As many times the room of their average as there are queries, and of every batch."""
    spec = parse(DecomposeSpec, SPEC, "spec").problem
    problem, found = spec.build(), {}
    for keep in (False, True):
        settings = SimulationSpec(batches=8, keep_queries=keep)
        found[keep] = cost(spec, problem, settings).results
        twice = cost(spec, problem, settings.model_copy(update={"batches": 16})).results
        assert twice == 2 * found[keep]
    assert found[True] == len(problem.queries) * found[False]
    assert len(problem.queries) > 1
