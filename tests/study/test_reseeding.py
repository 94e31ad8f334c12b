"""Other seeds: what counts as a verdict that turned."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

from sims.errors import InputError
from sims.judgement import Verdict, write_verdicts
from sims.study import reseeding
from sims.study.experiment import load_experiment
from sims.study.reseeding import compare, reseed

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
    comparison = compare(base, others)
    assert [row["turned"] for row in comparison["rows"]] == [False, True, True]
    assert comparison["turned"] == 2
    assert comparison["judged"] == 9
    assert comparison["inconclusive"] == 3
    assert comparison["rows"][0]["verdicts"] == {"supported": 2, "inconclusive": 1}
    found = [other["verdict"] for other in comparison["rows"][0]["others"]]
    assert found == ["supported", "inconclusive", "supported"]


def test_a_verdict_that_no_other_seed_gives_is_a_turn():
    base = ledger("supported", "refuted", "inconclusive")
    comparison = compare(base, [ledger("refuted", "supported", "refuted")] * 2)
    assert [row["turned"] for row in comparison["rows"]] == [True, True, False]


def test_a_missing_verdict_is_seen():
    comparison = compare(ledger("supported", "refuted", "refuted"), [[replace(ROW, regime="one")]])
    assert [row["verdicts"] for row in comparison["rows"]] == [
        {"supported": 1}, {"missing": 1}, {"missing": 1},
    ]  # fmt: skip


def test_an_experiment_that_was_not_run_is_left_out():
    base = [ROW, replace(ROW, experiment="other")]
    comparison = compare(base, [[ROW], [ROW]])
    assert [row["experiment"] for row in comparison["rows"]] == ["e"]
    assert comparison["judged"] == 2


def test_what_every_seed_found_is_told():
    seen = [replace(ROW, effect=x, interval=(x - 1, x + 1)) for x in (3.0, 4.0)]
    (row,) = compare([ROW], [[verdict] for verdict in seen])["rows"]
    assert row["others"] == [
        {"verdict": ROW.verdict, "effect": x, "interval": (x - 1, x + 1)} for x in (3.0, 4.0)
    ]


def test_rows_that_no_draw_could_have_turned_are_left_out():
    base = [replace(ROW, kind=k) for k in ("program", "theory", "both roads", "simulation")]
    base = [replace(row, regime=str(i)) for i, row in enumerate(base)]
    comparison = compare(base, [base])
    assert [row["regime"] for row in comparison["rows"]] == ["2", "3"]
    assert comparison["judged"] == 2


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
        write_verdicts([row], home / "verdicts.json", f"verdicts.json of {name} at smoke")
    write_verdicts(rows.values(), "results/smoke/ledger.json", "ledger.json of smoke")
    calls = []

    def load(name, fidelity, offset, *, redrawn):
        return SimpleNamespace(
            name=name, folder=Path(name), fidelity=fidelity, seed_offset=offset, redraws=False,
            redrawn=redrawn,
        )  # fmt: skip

    def simulate(experiment, output, theory):
        calls.append((experiment.name, experiment.seed_offset))
        anew = experiment.redrawn or experiment.redraws
        assert theory.read_text() == ("its own" if anew else "predictions")
        output.write_text("batches")

    def judge(experiment, simulation, theory, output):
        kind = "refuted" if (experiment.name, experiment.seed_offset) == ("two", 2) else "supported"
        row = replace(rows[experiment.name], verdict=kind)
        write_verdicts([row], output, f"verdicts.json of {experiment.name} at smoke")

    def predict(experiment, output):
        assert experiment.redrawn or experiment.redraws
        assert not output.is_symlink()  # or the run's own predictions would be lost
        output.write_text("its own")

    monkeypatch.setattr(reseeding.runner, "simulate", simulate)
    monkeypatch.setattr(reseeding.predicting, "predict", predict)
    monkeypatch.setattr(reseeding.runner, "judge", judge)
    monkeypatch.setattr(reseeding, "load_experiment", load)
    monkeypatch.setattr(reseeding, "claims_by_paper", lambda: {"2605.20271": 2})
    monkeypatch.setattr(reseeding.code, "digest", lambda *_: "code")

    def go(count, *names, redrawn=True):
        reseed(Path("results/smoke"), "smoke", names, count, redrawn=redrawn)
        done, calls[:] = list(calls), []
        return done, json.loads(Path("results/smoke/seeds.json").read_text())

    return go


def test_experiments_one_by_one_and_more_seeds(run):
    done, comparison = run(1, "one")
    assert done == [("one", 1)]
    assert (comparison["judged"], comparison["turned"]) == (1, 0)
    assert (
        comparison["ledger"] == sha256(Path("results/smoke/ledger.json").read_bytes()).hexdigest()
    )
    done, comparison = run(2)
    assert done == [("one", 2), ("two", 1), ("two", 2)]  # what was done is kept
    assert (comparison["judged"], comparison["turned"]) == (4, 1)
    (turned,) = (row for row in comparison["rows"] if row["turned"])
    assert (turned["experiment"], turned["verdicts"]) == ("two", {"supported": 1, "refuted": 1})
    assert not list(Path("results/smoke/redrawn").glob("**/*.nc"))
    assert run(2)[0] == []
    assert comparison["redrawn"]


def test_the_same_problems_keep_their_predictions_and_are_kept_apart(run):
    assert run(1, "one")[0] == [("one", 1)]
    done, comparison = run(2, "one", redrawn=False)
    assert done == [("one", 1), ("one", 2)]
    assert (comparison["judged"], comparison["redrawn"]) == (2, False)
    assert Path("results/smoke/one/theory.nc").read_text() == "predictions"
    assert run(1, "one")[1]["judged"] == 1


def test_heads_that_learn_from_another_seed_are_predicted_anew(run, monkeypatch):
    """Also where the problems are those of the run: what is learned is not."""
    load = reseeding.load_experiment

    def of_learning(*arguments, **options):
        return SimpleNamespace(**vars(load(*arguments, **options)) | {"redraws": True})

    monkeypatch.setattr(reseeding, "load_experiment", of_learning)
    assert run(1, "one", redrawn=False)[0] == [("one", 1)]
    assert Path("results/smoke/one/theory.nc").read_text() == "predictions"


@pytest.mark.parametrize("edited", ["simulate", "predict", "judge"])
def test_edited_code_is_run_again(run, monkeypatch, edited):
    """Whichever step of a run it is that would use it."""
    run(1, "one")
    other = {edited: "other code"}
    monkeypatch.setattr(reseeding.code, "digest", lambda step, *_: other.get(step, "code"))
    assert run(1, "one")[0] == [("one", 1)]
    assert run(1, "one")[0] == []


def test_damaged_verdicts_are_judged_again(run, capsys):
    run(1, "one")
    path = Path("results/smoke/redrawn/1/one/verdicts.json")
    path.write_bytes(path.read_bytes()[:-3])
    assert run(1, "one")[0] == [("one", 1)]
    assert f"{path}: got 'damaged contents'; it is judged again" in capsys.readouterr().err


def test_an_unknown_experiment_is_named(run):
    with pytest.raises(InputError, match="three"):
        run(1, "three")


def test_learned_heads_start_from_other_seeds():
    own, moved = (
        load_experiment("experiments/specialization", seed_offset=offset) for offset in (0, 2)
    )
    assert moved.simulation.seed == own.simulation.seed + 2000
    assert own.redraws
    remainder, other = (load_experiment("experiments/remainder", seed_offset=k) for k in (0, 2))
    assert not remainder.redraws
    assert other.simulation.seed == remainder.simulation.seed + 2
    # Seeds that follow one another draw the problems of a population: none may be in two offsets.
    drawn, other = (load_experiment("experiments/decomposition", seed_offset=k) for k in (0, 1))
    assert drawn.redraws
    most = max(point.population.problems for point in drawn.points if point.population)
    assert other.simulation.seed >= drawn.simulation.seed + most


def test_every_seed_of_a_problem_is_moved():
    """No two seeds of an experiment are the same where the file's are not, and none is left."""
    for name in ("remainder", "diversity"):
        own, same, moved = (
            load_experiment(f"experiments/{name}", "smoke", *offset, redrawn=redrawn)
            for offset, redrawn in (((), True), ((2,), False), ((2,), True))
        )
        assert own.problems == same.problems
        assert own.settings == same.settings
        assert [c for c, _ in moved.problems] == [c for c, _ in own.problems]
        before, after = (
            seeds([problem for _, problem in experiment.problems] + [experiment.settings])
            for experiment in (own, moved)
        )
        assert len(before) > 3
        assert after == [seed if seed is None else seed + 2000 for seed in before]
        assert moved.simulation.seed == own.simulation.seed + 2


def seeds(value):
    """Every value whose key ends in seed, at any depth."""
    if isinstance(value, list):
        return [seed for item in value for seed in seeds(item)]
    if not isinstance(value, dict):
        return []
    return [
        seed
        for key, item in value.items()
        for seed in ([item] if key.endswith("seed") else seeds(item))
    ]
