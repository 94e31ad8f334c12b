"""The audit at a small size: it has to catch what is planted, and to be able to fail itself."""

import json
import sys
from argparse import Namespace

import numpy as np
import pytest
from scipy import stats

from sims.audit import MUTATIONS, Mutation, calibrate, plant, planting, tails
from sims.audit import alarms as alarm_module
from sims.audit.alarms import alarms
from sims.audit.coverage import CORRELATION, coverage
from sims.audit.mutations import RIGHT
from sims.audit.runs import looks
from sims.cli import audit as command
from sims.judgement.intervals import (
    fixed_half_width,
    sequence_half_width,
    skewed_half_width,
)
from sims.papers import MAIN
from sims.study.ledger import claims_by_paper

tails_module = sys.modules["sims.audit.tails"]

SIZES = {"replicates": 64, "batches": 256, "costly": True}
FEW = ("label noise counted twice", "1/H for 1 − 1/H", "missing signal covariance", "σ for σ²",
       "keys reused between batches", "TF32 rounding of queries and keys")  # fmt: skip
"""Caught with few replicates, on a problem that is simulated once."""


@pytest.mark.slow
def test_every_falsehood_is_refuted_and_nothing_else():
    assert len(MUTATIONS) >= 20
    planted = plant(SIZES)
    for row in planted:
        if row["what"].startswith("nothing wrong"):
            assert row["verdict"] != "refuted", row
            assert row["effect"] < 1e-3
        else:
            assert row["verdict"] == "refuted", row
            assert row["effect"] >= 2, row
    assert {row["road"] for row in planted} == {"theory", "simulation"}


@pytest.fixture(scope="module")
def few():
    chosen = [m for m in (*RIGHT, *MUTATIONS) if m.what in FEW or m is RIGHT[0]]
    return [planting._row(m, {"replicates": 32, "batches": 64}) for m in chosen]


def test_some_falsehoods_are_refuted_and_nothing_else(few):
    assert [row["verdict"] for row in few[1:]] == ["refuted"] * (len(FEW) + 1)
    assert few[0]["verdict"] != "refuted"
    assert few[0]["effect"] < 1e-3


@pytest.mark.parametrize("costly", [True, False])
def test_all_are_planted_but_costly_ones_where_those_are_left_out(monkeypatch, costly):
    monkeypatch.setattr(planting, "_row", lambda mutation, sizes: mutation)
    every = [*RIGHT, *MUTATIONS]
    cheap = [m for m in every if not m.costly]
    assert 0 < len(cheap) < len(every)
    assert plant({"costly": costly}) == (every if costly else cheap)


def test_a_falsehood_within_the_margin_is_not_expected_to_be_refuted():
    right = planting.scalars(planting.truth())
    slight = Mutation("0.1 %", "theory", "terms", lambda: {k: 1.001 * v for k, v in right.items()})
    row = planting._row(slight, {"replicates": 32, "batches": 64})
    assert row["expected"] is None
    assert row["verdict"] != "refuted"
    assert row["effect"] == pytest.approx(0.05, rel=0.01)


def test_calibration():
    found = calibrate({"runs": 60, "batches": 64, "replicates": 16, "own": False})
    assert all(row["holds"] for rows in found.values() for row in rows)
    kinds = {"equivalence", "equivalence, t", "equivalence with a bias", "bound", "bound, t",
             "ordering", "rate", "remainder", "near-optimum, t", "12 claims, t (Holm)"}  # fmt: skip
    assert {row["claim"] for row in found["alarms"]} == kinds
    # Boundary claims do raise false alarms: the count is not zero by construction.
    assert sum(row["times"] for row in found["alarms"]) > 0
    assert CORRELATION in {row["of"] for row in found["coverage"]}


def test_too_narrow_intervals_are_noticed(monkeypatch):
    """Were sequences as narrow as t intervals, watching them would be seen not to cover."""
    monkeypatch.setattr(
        "sims.audit.coverage.sequence_half_width",
        lambda error, b, alpha: 0.8 * fixed_half_width(error, np.asarray(b) - 1, alpha),
    )
    monkeypatch.setattr(
        "sims.audit.coverage.optimal_set", lambda run, level: [run[:, 0].mean() < 1]
    )
    rng = np.random.default_rng(0)
    names = ("mse", "noise_variance", "cross_noise_covariance")
    real = {name: 1 + 0.1 * rng.normal(size=(200, 256)) for name in names}
    rows = coverage(real, dict.fromkeys(names, 1.0))
    watched = [row for row in rows if row["interval"].startswith(("confidence", "set of"))]
    assert {row["of"] for row in watched} >= {"mse", CORRELATION, "equal candidates"}
    assert not any(row["holds"] for row in watched)


def test_hasty_verdicts_are_noticed(monkeypatch):
    """Too narrow intervals let verdicts through on the wrong side, of every type of claim."""
    monkeypatch.setattr(
        "sims.judgement.settle.sequence_half_width", lambda error, b, alpha: 0.5 * error
    )
    monkeypatch.setattr(
        "sims.judgement.settle.fixed_half_width", lambda error, freedom, alpha: 0.5 * error
    )
    monkeypatch.setattr("sims.audit.alarms.adjust", lambda rows: rows)
    real = 1 + 0.02 * np.random.default_rng(1).normal(size=(60, 128, 4))
    by_kind = {}
    for row in alarms(real):
        by_kind.setdefault(row["claim"], []).append(row["holds"])
    assert all(not all(holds) for holds in by_kind.values()), by_kind


def test_holm_is_needed(monkeypatch):
    """Twelve claims at their margin go wrong too often if each is judged by itself."""
    every = alarm_module._cases
    monkeypatch.setattr(
        alarm_module, "_cases", lambda real: [c for c in every(real) if "Holm" in c.kind]
    )
    monkeypatch.setattr(alarm_module, "adjust", lambda rows: rows)
    rows = alarms(1 + 0.02 * np.random.default_rng(2).normal(size=(200, 64, 4)))
    assert len(rows) == 2
    assert not any(row["holds"] for row in rows)


def test_tails_hold_and_those_of_uncorrected_intervals_do_not(monkeypatch):
    """At a ledger's level t of 64 batches of skewness 2 misses eight times too often."""
    assert all(row["holds"] for row in tails(20_000))
    monkeypatch.setattr(tails_module, "skewed_half_width", lambda half, error, skewness: half)
    bare = {(row["interval"], row["of"]): row["holds"] for row in tails(20_000)}
    assert bare["t, 64 batches", "normal"]
    assert not bare["t, 64 batches", "gamma, skewness 2"]


def test_the_tails_are_at_the_level_of_this_ledger():
    rows = claims_by_paper()[MAIN]
    assert 0.7 * tails_module.ROWS <= rows <= 1.3 * tails_module.ROWS


def test_looks():
    assert looks(256) == [64, 128, 256]
    assert looks(100) == [64, 100]


def test_command_writes_and_prints(tmp_path, monkeypatch, capsys, few):
    alarms = [{"claim": "rate", "what": "true", "wrong": "refuted", "times": 1, "runs": 9,
               "most": 3, "holds": True}]  # fmt: skip
    coverage = [{"interval": "t", "of": "mse", "covered": 9, "runs": 9, "least": 5, "most": 9,
                 "holds": True}]  # fmt: skip
    tails = [{"interval": "t", "of": "normal", "missed": 3, "runs": 9, "nominal": 1.0, "most": 2,
              "holds": False}]  # fmt: skip
    monkeypatch.setattr("sims.audit.plant", lambda sizes: few)
    monkeypatch.setattr("sims.audit.tails", lambda runs: tails)
    monkeypatch.setattr(
        "sims.audit.calibrate", lambda sizes: {"alarms": alarms, "coverage": coverage}
    )
    monkeypatch.chdir(tmp_path)
    command.audit(Namespace(fidelity="smoke", output=None, json=False))
    said = capsys.readouterr()
    assert "σ for σ²" in said.out
    assert "1 of 1 coverages and 0 of 1 tails within bounds" in said.err
    written = json.loads((tmp_path / "results" / "smoke" / "audit.json").read_text())
    assert written["planted"] == few


def test_misses_are_counted_as_by_plain_loops():
    """By t at the first look, and by a sequence at any; SciPy's skewness and standard errors."""
    alpha, at = 0.2, [8, 16]
    values = np.random.default_rng(5).normal(size=(2000, 16))
    missed = np.zeros(2)
    for row in values:
        outside = []
        for n in at:
            error, k = stats.sem(row[:n]), stats.skew(row[:n]) / np.sqrt(n)
            widths = fixed_half_width(error, n - 1, alpha), sequence_half_width(error, n, alpha)
            outside.append([abs(row[:n].mean()) > skewed_half_width(w, error, k) for w in widths])
        missed += outside[0][0], any(sequence for _, sequence in outside)
    assert (missed > 0).all()
    np.testing.assert_array_equal(tails_module._missed(values, at, alpha), missed)
