"""Other seeds: what counts as a verdict that turned."""

import json
from argparse import Namespace
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from sims.cli import seeds as command
from sims.cli import steps
from sims.cli.seeds import compare, seeds
from sims.errors import InputError
from sims.experiment import load_experiment
from sims.judgement import Verdict, write_verdicts
from sims.papers import MAIN

ROW = Verdict("c", "e", "one", "s", "supported", 0.1, (0.0, 0.2), 0.3, 0.95, 8, "why", 0.01)


def ledger(*kinds):
    return [
        replace(ROW, regime=regime, verdict=kind)
        for regime, kind in zip(("one", "two", "three"), kinds, strict=True)
    ]


def test_only_supported_against_refuted_is_a_turn():
    base = ledger("supported", "refuted", "inconclusive")
    others = [
        ledger("supported", "inconclusive", "supported"),
        ledger("inconclusive", "refuted", "refuted"),
        ledger("supported", "supported", "inconclusive"),
    ]
    found = compare(base, others)
    assert [row["turned"] for row in found["rows"]] == [False, True, True]
    assert found["turned"] == 2
    assert found["judged"] == 9
    assert found["inconclusive"] == 3
    assert found["rows"][0]["verdicts"] == {"supported": 2, "inconclusive": 1}


def test_a_missing_verdict_is_seen():
    found = compare(ledger("supported", "refuted", "refuted"), [[replace(ROW, regime="one")]])
    assert [row["verdicts"] for row in found["rows"]] == [
        {"supported": 1}, {"missing": 1}, {"missing": 1},
    ]  # fmt: skip


def test_an_experiment_that_was_not_run_is_left_out():
    base = [ROW, replace(ROW, experiment="other")]
    found = compare(base, [[ROW], [ROW]])
    assert [row["experiment"] for row in found["rows"]] == ["e"]
    assert found["judged"] == 2


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A finished run of two experiments with one claim each; steps that only note their calls."""
    monkeypatch.chdir(tmp_path)
    rows = {name: replace(ROW, experiment=name, p_value=1e-9) for name in ("one", "two")}
    for name, row in rows.items():
        folder = Path("experiments", name)
        folder.mkdir(parents=True)
        (folder / "experiment.yaml").write_text("claims: []")
        home = Path("results/smoke", name)
        home.mkdir(parents=True)
        (home / "theory.nc").write_text("predictions")
        write_verdicts([row], home / "verdicts.json")
    write_verdicts(rows.values(), "results/smoke/ledger.json")
    calls = []

    def simulate(options):
        calls.append((options.experiment, options.seed_offset))
        Path(options.output).write_text("batches")

    def judge(options):
        home = Path(options.output).parent
        assert (home / "theory.nc").read_text() == "predictions"
        kind = "refuted" if (options.experiment, home.parent.name) == ("two", "2") else "supported"
        write_verdicts([replace(rows[options.experiment], verdict=kind)], options.output)

    for name, fake in {
        "simulate": simulate, "judge": judge, "learns": lambda *_: False,
        "all_claims": lambda: {MAIN: 2}, "fingerprint": lambda *_: "code",
    }.items():  # fmt: skip
        monkeypatch.setattr(command, name, fake)

    def go(count, *names):
        seeds(Namespace(fidelity="smoke", count=count, experiment=list(names) or None))
        done, calls[:] = list(calls), []
        return done, json.loads(Path("results/smoke/seeds.json").read_text())

    return go


def test_experiments_one_by_one_and_more_seeds(run, capsys):
    done, found = run(1, "one")
    assert done == [("one", 1)]
    assert (found["judged"], found["turned"]) == (1, 0)
    assert found["ledger"] == sha256(Path("results/smoke/ledger.json").read_bytes()).hexdigest()
    done, found = run(2)
    assert done == [("one", 2), ("two", 1), ("two", 2)]  # what was done is kept
    assert (found["judged"], found["turned"]) == (4, 1)
    assert "TURNED  c (two, one): supported; 1 supported, 1 refuted" in capsys.readouterr().out
    assert not list(Path("results/smoke/seeds").glob("**/*.nc"))
    assert run(2)[0] == []


def test_edited_code_is_run_again(run, monkeypatch):
    run(1, "one")
    monkeypatch.setattr(command, "fingerprint", lambda *_: "other code")
    assert run(1, "one")[0] == [("one", 1)]


def test_an_unknown_experiment_is_named(run):
    with pytest.raises(InputError, match="three"):
        run(1, "three")


def test_learned_heads_start_from_other_seeds():
    experiment = load_experiment("experiments/specialization")
    moved = steps._changed(experiment, Namespace(seed_offset=2))
    first = experiment.settings["seeds"]["first"]
    assert moved.simulation.seed == experiment.simulation.seed + 2
    assert moved.settings["seeds"]["first"] == first + 2000
    small = experiment.settings["smoke"]["seeds"]["first"]
    assert moved.settings["smoke"]["seeds"]["first"] == small + 2000
    assert steps.learns("specialization", "standard")
    assert not steps.learns("angles", "standard")
