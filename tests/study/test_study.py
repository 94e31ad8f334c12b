"""Studies as values: defined in Python, from an installed package, opened once."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml

from sims import Run, Study
from sims.base import documents
from sims.base.errors import InputError
from sims.judgement.effects import mean, share
from sims.montecarlo import HostReplicates
from sims.study.batches import stack_batches
from tests.cli.conftest import folder  # noqa: F401
from tests.cli.small import EXPERIMENT, OWN
from tests.cli.small import run as sims

pytestmark = pytest.mark.usefixtures("folder")
QUESTION = yaml.safe_load("""
id: above
own: Means are above a half.
question: Is the mean above a half?
asks: share
effect: excess
status: exploratory
""")


def draws(draw, problem, batch):
    return {"mean": problem["shift"] + draw.rng().random()}


def excess(results):
    return {"excess": share(stack_batches(results, "mean") - 0.5)}


def study(law, **functions):
    code = {
        "problem": dict,
        "theory": xr.Dataset,
        "sampler": lambda problem: HostReplicates(draws, constants=problem),
        "effects": excess,
    }
    return Study(law, [QUESTION], settings={"problems": 20}, **(code | functions))


def test_a_study_of_functions_is_run_and_an_edited_one_is_run_again():
    shares = []
    for shift in (0.5, -0.5):
        (answer,) = Run(study({"shift": [shift]}), "smoke").answers()
        shares.append(answer.result.simulated.bracket)
    assert shares == [(1, 1), (0, 0)]

    def lower(problem):
        def low(draw, shared, batch):
            return {"mean": draws(draw, shared, batch)["mean"] - 2.0}

        return HostReplicates(low, constants=problem)

    law = {"shift": [0.5]}
    run = Run(study(law), "smoke")
    run.answers()
    kept = run.results.digest
    run.answers()
    assert run.results.digest == kept
    (answer,) = Run(study(law, sampler=lower), "smoke").answers()
    assert answer.result.simulated.bracket == (0, 0)
    with pytest.raises(InputError, match="Study: got 'smapler'"):
        study(law, smapler=lower)


def test_a_question_of_another_kind_is_refused_before_the_simulation():
    def another(results):
        return {"excess": mean(stack_batches(results, "mean"))}

    with pytest.raises(InputError, match="questions, above, asks: got 'share'; allowed: mean"):
        Run(study({"shift": [0.5]}, effects=another)).answers()
    assert not Path("results").exists()


def test_an_installed_package_ships_a_study(tmp_path, monkeypatch, capsys):
    for name, text in {
        "site/medians/__init__.py": "",
        "site/medians/experiment.yaml": yaml.safe_dump(EXPERIMENT),
        "site/medians/study.py": OWN["study.py"],
        "site/medians-1.dist-info/METADATA": "Name: medians\nVersion: 1\n",
        "site/medians-1.dist-info/entry_points.txt": "[sims.studies]\nshipped = medians\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert sims("run", "shipped", "--fidelity", "smoke") == 0
    assert "results/smoke/medians/answers.json" in capsys.readouterr().out


def test_a_run_reads_its_declaration_once(monkeypatch):
    read = []
    load = documents.yaml.load

    def counted(stream, *arguments, **options):
        read.append(str(stream)[:20])
        return load(stream, *arguments, **options)

    monkeypatch.setattr(documents.yaml, "load", counted)
    Run.load("small", "smoke").answers()
    declarations = [text for text in read if "decomposition" not in text]
    assert len(declarations) - len({*declarations}) == 0


def test_problems_of_a_study_in_python_may_be_simulated_in_processes():
    from sims.steps.simulate import simulate

    run = Run(study({"shift": [0.5]}), "smoke")
    simulate(run, run.home / "simulation.nc", processes=2, predicting=True)
    alone = Run(study({"shift": [0.5]}), "smoke", folder=run.home.with_name("alone"))
    alone.answers()
    np.testing.assert_array_equal(alone.results.simulation["mean"], run.results.simulation["mean"])
