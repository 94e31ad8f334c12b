"""Rows of a ledger: written and read, and adjusted after Holm for all claims of a paper."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from sims.errors import InputError
from sims.files import write_json
from sims.judgement import Finding, Verdict, adjust, read_ledger, write_verdicts
from sims.papers import MAIN
from sims.study.schema import ClaimSpec

ROW = Verdict("c", "e", "all", "s", "supported", 0.1, (0.0, 0.2), 0.3, 0.95, 8, "why", 0.01)


def rows(*p, **fields):
    return [replace(ROW, p_value=one, **fields) for one in p]


def adjusted(verdicts, claims=()):
    return pytest.approx([v.adjusted for v in adjust(verdicts, dict(claims))])


def test_ledger_round_trip(tmp_path):
    written = [ROW, replace(ROW, verdict="inconclusive", effect=None, interval=None)]
    write_verdicts(written, tmp_path / "ledger.json", "ledger.json of smoke")
    assert read_ledger(tmp_path / "ledger.json", "ledger.json of smoke") == written
    write_json([{"claim": 1}], tmp_path / "ledger.json", "ledger.json of smoke")
    with pytest.raises(InputError):
        read_ledger(tmp_path / "ledger.json")


@pytest.mark.parametrize("changes", [{"effect": None}, {"effect": math.nan}, {"interval": None}])
def test_no_verdict_without_numbers(changes):
    with pytest.raises(InputError):
        replace(ROW, **changes)


def test_finding_binds_to_claim():
    claim = ClaimSpec(
        id="angles",
        statement="s",
        test="bound",
        effects="e",
        margin=0.1,
        formula="none",
        paper="2601.22766",
        kind="simulation",
        over=["queries", "seeds"],
    )
    verdict = Verdict.of(claim, "e", Finding("refuted", 1.0, (0.9, 1.1), 8, "r"))
    assert (verdict.effect, verdict.claim, verdict.paper) == (1.0, "angles", "2601.22766")
    assert verdict.worth == "simulation over queries, seeds"


def test_holm_by_hand():
    # 4·0.01, max(·, 3·0.02), max(·, 2·0.03), max(·, 0.04)
    assert adjusted(rows(0.02, 0.04, 0.01, 0.03)) == [0.06, 0.06, 0.04, 0.06]
    assert adjusted(rows(0.5, 0.9)) == [1.0, 1.0]
    # Claims that were not judged count, as if their p-values were 1; and no fewer than were.
    assert adjusted(rows(0.02, 0.01), {MAIN: 6}) == [0.1, 0.06]
    assert adjusted(rows(0.02, 0.01), {MAIN: 1}) == [0.02, 0.02]


def test_family_wise_error():
    """Ten true nulls beside five false ones: some true one is rejected at most 5 % of the time."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(1000):
        found = adjust(rows(*[1e-6] * 5, *rng.uniform(size=10).tolist()))
        wrong += any(v.verdict == "supported" for v in found[5:])
    assert 10 < wrong <= binom.ppf(0.999, 1000, 0.05)


def test_a_verdict_that_does_not_survive_is_open():
    weak, strong = rows(0.04, 1e-4)
    (refuted,), (unknown,) = rows(0.02, verdict="refuted"), rows(0.4, verdict="inconclusive")
    found = adjust([weak, strong, refuted, unknown])
    assert [v.verdict for v in found] == ["inconclusive", "supported"] + ["inconclusive"] * 2
    # Either family holds all four claims; those not decided that way have p = 1.
    assert [v.adjusted for v in found] == pytest.approx([0.12, 4e-4, 0.08, 1.0])
    assert found[0].reason.startswith("supported by itself (p = 0.04), but not among 4 claims")
    # A p-value that is not known counts with 1 − level: enough by itself, not among two.
    unsaid = rows(None)
    assert adjust(unsaid)[0].verdict == "supported"
    assert [v.verdict for v in adjust(unsaid * 2)] == ["inconclusive"] * 2


def test_only_rows_that_draws_could_have_turned_are_a_family():
    """Rows of algebra and theory beside them cost the tested ones nothing."""
    tested = rows(0.02, kind="both roads") + rows(0.02, kind="simulation")
    others = [*rows(0.04, kind="program"), *rows(0.04, kind="theory")] * 10
    found = adjust([*others, *tested])
    assert found[:-2] == others  # as they were, with no adjusted p-value
    assert [v.adjusted for v in found[-2:]] == pytest.approx([0.04, 0.04])
    # A row that does not say its kind is of the family: the stricter reading.
    assert adjusted([*tested, *rows(0.9)]) == [0.06, 0.06, 0.9]


def test_another_paper_changes_no_adjusted_p_value():
    """The family is one paper's: beside two claims of ours, four of another, two of them judged."""
    first, last = rows(1e-9, 0.03, paper="2601.22766")
    found = [first, *rows(0.02, 0.01), last]
    assert adjusted(found, {"2601.22766": 4}) == [4e-9, 0.02, 0.02, 0.09]
