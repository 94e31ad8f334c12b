"""The command line: help, one-line errors with exit code 2, JSON, nothing computed is lost."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from sims.cli import steps
from sims.papers import MAIN, papers
from tests.cli.small import EFFECTS, EXPERIMENT, run

ROOT = Path(__file__).parents[2]
COMMANDS = [
    "decompose", "experiments", "claims", "schema", "reproduce",
    "simulate", "predict", "judge", "plot", "ledger", "report", "table", "diff", "open", "new",
]  # fmt: skip


def test_every_command_has_help(capsys):
    assert run("--help") == 0
    overview = capsys.readouterr().out
    for command in COMMANDS:
        assert command in overview
        assert run(command, "--help") == 0
        assert capsys.readouterr().out.startswith(f"usage: sims {command}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["fly"], "fly"),
        (["decompose"], "SPEC.yaml"),
        (["decompose", "none.yaml"], "none.yaml"),
        (
            ["decompose", "spec.yaml", "--rel-mcse", "-1"],
            "--rel-mcse: got '-1'; allowed: a finite",
        ),
        (["decompose", "spec.yaml", "--rel-mcse", "x"], "--rel-mcse"),
        (
            ["decompose", "spec.yaml", "--seed", "-3"],
            "--seed: got '-3'; allowed: a whole",
        ),
        (["simulate", "none"], "experiment: got 'none'; allowed: small"),
        (["judge", "small", "--fidelity", "smoke"], "simulation.nc"),
        (["simulate", "small", "--fidelity", "fine"], "fine"),
        (["ledger", "--output", "spec.yaml/x.json"], "spec.yaml"),
        (["report"], "ledger.json"),
        (["claims", "--paper", "2601.22766"], "--paper: got '2601.22766'; allowed: a paper"),
        (["schema", "verse"], "verse"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(folder, capsys, arguments, words):
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err


def test_listings(folder, capsys):
    assert run("experiments", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"name": "small", "title": "T", "claims": ["decomposition"]}
    ]
    assert run("claims", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows == []
    shutil.copytree(ROOT / "papers", folder / "papers")
    paper = papers()[MAIN]
    assert run("claims", "--json", "--paper", paper.arxiv) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["paper"] for row in rows} == {paper.arxiv}
    listed = [(claim.id, False) for claim in paper.claims] + [(own.id, True) for own in paper.ours]
    assert [(row["claim"], row["ours"]) for row in rows] == listed
    assert run("claims", "--paper", "none") == 2
    assert "--paper: got 'none'; allowed: " + ", ".join(papers()) in capsys.readouterr().err
    for what in ("experiment", "problem", "decompose", "paper"):
        assert run("schema", what) == 0
        assert json.loads(capsys.readouterr().out)["type"] == "object"
    assert run("experiments") == run("claims") == 0
    text = capsys.readouterr().out
    assert "small" in text
    assert paper.title in text
    assert "Our own claims" in text


def test_pipeline_steps(folder, capsys):
    """From an experiment's folder to the report, step by step."""
    shutil.copytree(ROOT / "papers", folder / "papers")
    for step in ("simulate", "predict", "judge", "plot"):
        assert run(step, "small", "--fidelity", "smoke") == 0, capsys.readouterr().err
    assert run("ledger", "--fidelity", "smoke") == 0
    assert run("report", "--fidelity", "smoke") == 0
    said, home = capsys.readouterr().out.splitlines(), "results/smoke"
    files = [f"{home}/small/{name}" for name in ("simulation.nc", "theory.nc", "figure.pdf")]
    assert [*said[:2], *said[3:]] == [*files, f"{home}/ledger.json", f"{home}/report.html"]
    assert re.fullmatch(
        rf"small: 1 (supported|refuted|inconclusive); {home}/small/verdicts.json", said[2]
    )
    # Who says where it goes knows.
    assert run("ledger", "--fidelity", "smoke", "--output", f"{home}/ledger.json") == 0
    assert capsys.readouterr().out == ""
    out = folder / "results" / "smoke"
    ledger = json.loads((out / "ledger.json").read_text())
    assert [list(row) for row in ledger] == [
        ["claim", "experiment", "regime", "statement", "verdict", "effect", "interval", "margin",
         "level", "replicates", "reason", "p_value", "adjusted", "needs", "paper", "kind", "over",
         "contract", "edited", "seal"]
    ]  # fmt: skip
    assert ledger[0]["replicates"] == 32
    page = (out / "report.html").read_text()
    assert "data:image/" in page
    assert page.count("<script") == 1  # its own: a caption cannot change the page
    assert 'src="http' not in page
    assert str(folder) not in page
    assert "not covered" in page
    assert (out / "small" / "caption.md").read_text().startswith("**Seen** 2 points;")
    capsys.readouterr()
    assert run("claims", "--fidelity", "smoke") == 0
    assert "small" in capsys.readouterr().out

    assert run("publish", "--fidelity", "smoke") == 0
    published = out.parent / "published"
    assert {p.name for p in published.iterdir()} == {
        "README.md", "ledger.json", "report.html", "small.png"
    }  # fmt: skip
    assert "data:image/" in (published / "report.html").read_text()
    overview = (published / "README.md").read_text()
    assert "[small](small.png)" in overview
    assert run("publish", "--fidelity", "paper") == 2
    assert "no finished run" in capsys.readouterr().err

    before = {p: p.read_bytes() for p in (out / "small").glob("figure.*")}
    assert run("plot", "small", "--fidelity", "smoke") == 0
    assert before == {p: p.read_bytes() for p in (out / "small").glob("figure.*")}  # same bytes


def test_finished_points_are_reused(folder, monkeypatch, capsys):
    """An interrupted or widened grid computes only what is new."""
    import sims.study.roads as roads

    calls = []
    real = roads.estimate

    def counting(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(roads, "estimate", counting)
    assert run("simulate", "small", "--fidelity", "smoke") == 130
    assert not Path("results/smoke/small/simulation.nc").exists()
    assert run("simulate", "small", "--fidelity", "smoke") == 0
    assert len(calls) == 3  # one finished, one interrupted, one again
    wider = {**EXPERIMENT, "grid": [{"heads.bandwidth": [0.5, 0.7, 0.9]}]}
    (folder / "experiments/small/experiment.yaml").write_text(yaml.safe_dump(wider))
    assert run("simulate", "small", "--fidelity", "smoke") == 0
    assert len(calls) == 4
    many = {"label": "many", "value": [0.9] * 5}
    bad = {**EXPERIMENT, "grid": [{"heads.bandwidth": [0.5, 0.7, many]}]}
    (folder / "experiments/small/experiment.yaml").write_text(yaml.safe_dump(bad))
    kept = Path("results/smoke/small/simulation.nc").read_bytes()
    assert run("simulate", "small", "--fidelity", "smoke") == 2
    assert "grid point 0002 (heads.bandwidth: many)" in capsys.readouterr().err
    assert len(calls) == 4  # the impossible point was found before any was computed
    assert Path("results/smoke/small/simulation.nc").read_bytes() == kept


def test_what_was_edited_after_the_simulation_began_is_marked(folder):
    for step in ("simulate", "predict", "judge"):
        assert run(step, "small", "--fidelity", "smoke") == 0
    path, verdicts = folder / "experiments/small/effects.py", "results/smoke/small/verdicts.json"
    assert not json.loads(Path(verdicts).read_text())[0]["edited"]
    path.write_text(EFFECTS.replace("- 1", "- 1.0 "))
    assert run("judge", "small", "--fidelity", "smoke") == 0
    assert json.loads(Path(verdicts).read_text())[0]["edited"]


def test_a_family_that_effects_lack_is_named(folder, capsys):
    path = folder / "experiments/small/experiment.yaml"
    path.write_text(yaml.safe_dump(EXPERIMENT).replace("effects: gaps", "effects: gap"))
    for step, code in (("simulate", 0), ("predict", 0), ("judge", 2)):
        assert run(step, "small", "--fidelity", "smoke") == code
    line = "small: claims, decomposition (all), effects: got 'gap'; allowed: gaps"
    assert line in capsys.readouterr().err


def test_run_is_all_steps_of_one_experiment(folder, capsys):
    assert run("run", "small", "--fidelity", "smoke") == 0
    out = capsys.readouterr().out
    assert out.startswith("supported") or out.startswith("inconclusive")
    assert (folder / out.splitlines()[-1]).is_file()


@pytest.mark.parametrize(
    ("cores", "memory", "accelerator", "processes"),
    [(4, 64, False, 4), (4, 5, False, 2), (4, 1, False, 1), (1, 64, False, 1), (4, 64, True, 1)],
)
def test_processes_have_a_core_and_memory_each(monkeypatch, cores, memory, accelerator, processes):
    """2 GiB each; an accelerator is for one alone."""
    monkeypatch.setattr("sims.runtime.host_devices", lambda: cores)
    monkeypatch.setattr("sims.runtime.memory", lambda: memory * 2**30)
    monkeypatch.setattr(steps, "accelerated", lambda: accelerator)
    assert steps._processes() == processes
