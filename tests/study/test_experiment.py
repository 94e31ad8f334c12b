"""The experiment file: what is refused and how, defaults, schema, digests."""

from pathlib import Path

import numpy as np
import pytest

from sims.base.errors import InputError
from sims.base.validation import parse
from sims.cli.decompose import DecomposeSpec
from sims.study.running import Run
from sims.study.schema import ExperimentSpec, SimulationSpec, TheorySpec
from sims.study.specification import ProblemSpec
from tests.cli.small import EXPERIMENT, SPEC, changed

ROOT = Path(__file__).parents[2]
PROBLEM = SPEC["problem"]


def test_build():
    task, heads, n, queries = parse(ProblemSpec, PROBLEM, "file").build()
    assert (task.dimension, heads.count, heads.width, n) == (4, 2, 1, 64)
    assert queries.shape == (4, 4)
    assert float(task.noise_sd) == 0.5
    np.testing.assert_allclose(heads.frames[0].T @ heads.frames[1], [[0.5**0.5]], atol=1e-15)


def test_redundant_views():
    """The latent target and queries are padded: nothing depends on ξ but the views."""
    data = changed(PROBLEM, "design", {"kind": "redundant_views", "noise": 0.5, "correlation": 0.2})
    data = changed(data, "heads.frames", None)
    task, heads, _, queries = parse(ProblemSpec, data, "file").build()
    assert task.dimension == heads.dimension == queries.shape[1] == 4 + 2
    assert not queries[:, 4:].any()
    assert not task.target.frequency[:, 4:].any()
    with pytest.raises(InputError, match=r"heads\.frames: got 'haar'; allowed: nothing"):
        parse(ProblemSpec, changed(data, "heads.frames", {"kind": "haar"}), "file").build()


def test_key_frames_are_drawn_apart_from_frames_of_the_same_seed():
    """W_Q and W_K: of one kind and one seed in a file, yet other draws."""
    data = changed(PROBLEM, "heads.frames", {"kind": "haar", "seed": 1})
    alone = parse(ProblemSpec, data, "file").build().heads
    data = changed(data, "heads.key_frames", {"kind": "haar", "seed": 1})
    heads = parse(ProblemSpec, data, "file").build().heads
    np.testing.assert_array_equal(heads.frames, alone.frames)
    assert abs(np.einsum("hdk,hdk->", heads.frames, heads.key_frames)) < 1.9  # of 2 if they are one


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
    assert digest(dict(reversed(PROBLEM.items()))) == base != digest(changed(PROBLEM, "n", 32))
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
