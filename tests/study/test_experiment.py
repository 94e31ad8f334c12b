"""The experiment file: what is refused and how, defaults, schema, digests."""

from pathlib import Path

import numpy as np
import pytest

from sims.base.errors import InputError
from sims.base.validation import parse
from sims.cli.decompose import DecomposeSpec
from sims.study.planning import cost
from sims.study.running import Run
from sims.study.schema import ExperimentSpec, SimulationSpec, TheorySpec
from sims.study.specification import ProblemSpec
from tests.cli.small import EXPERIMENT, changed

ROOT = Path(__file__).parents[2]
PROBLEM = {
    "dimension": 6,
    "design": {"kind": "isotropic"},
    "target": {"kind": "rbf"},
    "noise_sd": 0.5,
    "heads": {
        "count": 3,
        "width": 2,
        "frames": {"kind": "equiangular", "angle": 60},
        "bandwidth": 0.7,
    },
    "n": 32,
    "queries": {"kind": "gaussian", "count": 4, "scale": 0.5},
}


def test_build():
    task, heads, n, queries = parse(ProblemSpec, PROBLEM, "file").build()
    assert (task.dimension, heads.count, heads.width, n) == (6, 3, 2, 32)
    assert queries.shape == (4, 6)
    assert float(task.noise_sd) == 0.5
    np.testing.assert_allclose(heads.frames[0].T @ heads.frames[1], 0.5 * np.eye(2), atol=1e-15)


def test_redundant_views():
    """The latent target and queries are padded: nothing depends on ξ but the views."""
    data = changed(PROBLEM, "design", {"kind": "redundant_views", "noise": 0.5, "correlation": 0.2})
    data = changed(data, "heads.frames", None)
    task, heads, _, queries = parse(ProblemSpec, data, "file").build()
    assert task.dimension == heads.dimension == queries.shape[1] == 6 + 3 * 2
    assert not queries[:, 6:].any()
    assert not task.target.frequency[:, 6:].any()
    with pytest.raises(InputError, match=r"heads\.frames: got 'haar'; allowed: nothing"):
        parse(ProblemSpec, changed(data, "heads.frames", {"kind": "haar"}), "file").build()


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("dimension", 5, "dimension: got 5; allowed: at least heads.count . heads.width = 6"),
        ("heads.frames.angle", 120, "heads.frames.angle: got 120; allowed: degrees, 0 to 90"),
        ("heads.bandwidth", [1.0, 1.0, -2.0], "heads.bandwidth: got -2.0"),
        ("heads.bandwidth", [1.0], r"heads.bandwidth: got \(1,\); .* shape \(3,\)"),
        ("target.lengthscale", 0.0, "target.lengthscale: got 0.0"),
        (
            "design",
            {"kind": "gaussian", "covariance": [[1.0, 0.0], [0.0, 1.0]]},
            "design.dimension: got 2; allowed: 6",
        ),
        ("heads.frames", None, "heads.frames: got None; allowed: equiangular, gram"),
        ("n", 2**60, "n: got|problem: got"),
    ],
)
def test_problems_that_cannot_be_built_are_refused_in_one_line(path, value, line):
    spec = parse(ProblemSpec, changed(PROBLEM, path, value), "file")
    with pytest.raises(InputError, match=line) as caught:
        cost(spec, spec.build(), SimulationSpec())
    assert "\n" not in str(caught.value)


def test_fidelities_override():
    changes = {"simulation": {"batches": 4}, "settings": {"problems": 2}}
    data = EXPERIMENT | {
        "simulation": {"seed": 3, "batches": 10},
        "fidelities": {"smoke": changes, "standard": {}},
    }
    experiment = parse(ExperimentSpec, data, "file")
    sizes = [
        (
            experiment.simulation_settings(name).batches,
            experiment.experiment_settings(name)["problems"],
        )
        for name in ("smoke", "standard")
    ]
    assert sizes == [(4, 2), (10, 3)]
    assert experiment.simulation_settings("smoke").seed == 3
    with pytest.raises(InputError, match="fidelity: got 'paper'; allowed: smoke, standard"):
        experiment.simulation_settings("paper")


def test_schema_defaults_are_the_models():
    """The schema of either file shows the values that an empty section gets."""
    for model, where, files in (
        (SimulationSpec, "simulation", (ExperimentSpec, DecomposeSpec)),
        (TheorySpec, "theory", (DecomposeSpec,)),
    ):
        filled = parse(model, {}, "file").model_dump()
        for file in files:
            schema = file.model_json_schema()
            shown = schema["$defs"][model.__name__]["properties"]
            assert {name: node["default"] for name, node in shown.items()} == filled
            assert schema["properties"][where]["default"] == filled
        assert parse(DecomposeSpec, {"problem": PROBLEM}, "file").model_dump()[where] == filled


def test_digest_is_of_the_problem_alone():
    def digest(problem):
        return parse(ProblemSpec, problem, "file").model_dump_json()

    base = digest(PROBLEM)
    assert digest(dict(reversed(PROBLEM.items()))) == base != digest(changed(PROBLEM, "n", 64))
    # Spelling out a default is the same problem; a whole number is the number.
    for path, value in (("heads.kernel", "gaussian"), ("target.seed", 0), ("noise_sd", 0.5)):
        assert digest(changed(PROBLEM, path, value)) == base


@pytest.mark.parametrize(
    "folder",
    [p.parent for p in (ROOT / "experiments").glob("*/experiment.yaml")],
    ids=lambda p: p.name,
)
def test_every_experiment_is_valid_at_every_fidelity(folder):
    for fidelity in ("smoke", "standard", "paper"):
        experiment = Run.load(folder, fidelity)
        assert experiment.simulation.batches >= 2
        assert experiment.study.settings == experiment.settings
