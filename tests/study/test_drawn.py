"""An experiment of a law's problems that has no code: problems, effects and figure are drawn."""

import json
import re
from pathlib import Path

import pytest
import yaml

from sims.study import run
from sims.study.code import FORMATS
from tests.cli.conftest import folder  # noqa: F401
from tests.cli.small import run as sims

pytestmark = pytest.mark.usefixtures("folder")


def test_effects_are_gaps_of_the_problems_that_decompose_prints(capsys):
    """By hand from both methods; a problem is a file of its own, and NAME#i."""
    experiment = run("small", "smoke", figure=False)
    study, results = experiment.study, experiment.results
    found = study.effects(results)["mse"]
    assert [a.result.problems for a in experiment.answers()] == [3]
    for i, name in enumerate(results.estimates):
        bandwidth = study.file_of(i)["problem"]["heads"]["bandwidth"]
        assert results.coordinates[name] == {"heads.bandwidth": bandwidth}
        assert 0.7 <= bandwidth <= 0.9
        gaps = results.estimates[name]["mse"].values / float(results.predictions[name]["mse"]) - 1
        assert found.value[i] == pytest.approx(gaps.mean())
        assert found.error[i] == pytest.approx(gaps.std(ddof=1) / 2)
        Path("one.yaml").write_text(yaml.safe_dump(study.file_of(i)))
    assert len(set(found.value)) == len(results.estimates) == 3
    assert sims("decompose", "small#0", "--json") == 0
    drawn = json.loads(capsys.readouterr().out)["settings"]["problem"]
    assert drawn["heads"]["bandwidth"] == study.file_of(0)["problem"]["heads"]["bandwidth"]
    assert sims("decompose", "one.yaml", "--json") == 0
    printed = json.loads(capsys.readouterr().out)["terms"]["mse"]["theory"]
    assert printed == pytest.approx(float(results.predictions["0002"]["mse"]))


def test_a_new_experiment_runs_as_it_is(capsys, monkeypatch):
    monkeypatch.setitem(FORMATS, "smoke", ("svg",))
    assert sims("new", "my_question") == 0
    assert "sims run my_question --fidelity smoke" in capsys.readouterr().out
    assert sims("run", "my_question", "--fidelity", "smoke") == 0
    assert re.search("How far is the noise.+ exploratory", capsys.readouterr().out)
    home = Path("results/smoke/my_question")
    assert (home / "caption.md").read_text().startswith("Points: a problem each, with bars of two")
    drawn = (home / "figure.svg").read_text()
    assert set(re.findall(r"<!-- (heads\.\S+|noise_sd) -->", drawn)) == {
        "noise_sd",
        "heads.bandwidth",
        "heads.frames.angle",
    }
