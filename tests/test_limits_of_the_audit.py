"""The audit's own limits: by binomials added up one by one, and the size of what is planted."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims.audit import Mutation, planting
from sims.audit import alarms as alarm_module
from sims.audit import coverage as coverage_module
from sims.audit.runs import LEVEL, SURE
from sims.judgement import Finding

NAMES = ("mse", "noise_variance", "cross_noise_covariance")


def quantile(share, runs, hit):
    """The least count that as many of ``runs`` or fewer hit in, with that probability or more."""
    p = Fraction(round(hit * 100), 100)
    total = Fraction(0)
    for count in range(runs + 1):
        total += math.comb(runs, count) * p**count * (1 - p) ** (runs - count)
        if total >= share:
            return count
    return runs


def test_limits_of_coverage_share_one_percent_between_rows_and_both_sides(monkeypatch):
    """Of n rows each may be out with 1 %/n, half of that on either side."""
    runs = 500
    monkeypatch.setattr(coverage_module, "_slope_kept", lambda run: True)
    monkeypatch.setattr(coverage_module, "optimal_set", lambda run, level: [True])
    rng = np.random.default_rng(0)
    real = {name: 1 + 0.1 * rng.normal(size=(runs, 65)) for name in NAMES}
    rows = coverage_module.coverage(real, dict.fromkeys(NAMES, 1.0))
    each = (1 - SURE) / len(rows)
    least, most = (quantile(share, runs, LEVEL) for share in (each / 2, 1 - each / 2))
    assert {row["least"] for row in rows} == {least}
    assert {row["most"] for row in rows} == {most, runs}
    # What follows would not tell the two sides from one, were the limits too coarse.
    assert least < quantile(each, runs, LEVEL)


@pytest.mark.parametrize("cases", [1, 7, 21])
def test_the_limit_on_false_alarms_shares_one_percent_between_cases(monkeypatch, cases):
    runs = 400
    case = alarm_module.Case("rate", "true", "refuted", np.zeros((runs, 64, 1)), lambda _: "no")
    monkeypatch.setattr(alarm_module, "_cases", lambda real: [case] * cases)
    rows = alarm_module.alarms(np.zeros((runs, 64, 1)))
    assert {row["most"] for row in rows} == {quantile(1 - (1 - SURE) / cases, runs, 1 - LEVEL)}
    assert all(row["holds"] and row["times"] == 0 for row in rows)
    assert quantile(1 - (1 - SURE) / 7, runs, 1 - LEVEL) > quantile(SURE, runs, 1 - LEVEL)


@pytest.mark.parametrize("road", ["theory", "simulation"])
def test_a_falsehood_is_as_large_as_its_largest_gap_of_either_sign(monkeypatch, road):
    gaps = [SimpleNamespace(value=value) for value in (0.001, -0.3, 0.1)]
    found = Finding("refuted", 0.3, (0.2, 0.4), 0.1, 0.95, 64, "")
    data = xr.Dataset({"mse": ("batch", np.ones(2))})
    monkeypatch.setattr(planting, "_batches", lambda *_: data)
    monkeypatch.setattr(planting, "truth", lambda case: None)
    monkeypatch.setattr(planting, "scalars", lambda data: {"mse": 1.0})
    monkeypatch.setattr(planting, "gaps", lambda *_: gaps)
    monkeypatch.setattr(planting, "_watch", lambda effects, sizes: found)
    planted = Mutation("a third", road, "terms", lambda *given: given[0] if given else {})
    row = planting._row(planted, {"replicates": 1, "batches": 64})
    assert row["effect"] == pytest.approx(0.3 / planting.MARGIN)
    assert row["expected"] == "refuted"
