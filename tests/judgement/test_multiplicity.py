"""Holm's adjustment over a ledger."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from sims.judgement import Verdict, adjust, holm, read_ledger
from sims.kinds import is_tested
from sims.papers import MAIN

ROW = Verdict("c", "e", "all", "s", "supported", 0.1, (0.0, 0.2), 0.3, 0.95, 8, "why", 0.01)


def test_holm_by_hand():
    # 4·0.01, max(·, 3·0.02), max(·, 2·0.03), max(·, 0.04)
    assert holm([0.02, 0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.06, 0.04, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    # Tests that were not made count: as if their p-values were 1.
    assert holm([0.02, 0.01], 6) == pytest.approx(holm([0.02, 0.01, 1, 1, 1, 1])[:2])


def test_family_wise_error():
    """Ten true nulls beside five false ones: some true one is rejected at most α of the time."""
    rng, alpha, trials = np.random.default_rng(0), 0.1, 4000
    wrong = 0
    for _ in range(trials):
        p = rng.uniform(size=15)
        p[:5] = 1e-6
        wrong += bool((holm(p)[5:] <= alpha).any())
    assert wrong <= binom.ppf(0.999, trials, alpha)


def test_a_verdict_that_does_not_survive_is_open():
    weak, strong = replace(ROW, p_value=0.04), replace(ROW, p_value=1e-4)
    refuted = replace(ROW, verdict="refuted", p_value=0.02)
    unknown = replace(ROW, verdict="inconclusive", p_value=0.4)
    found = adjust([weak, strong, refuted, unknown])
    assert [v.verdict for v in found] == [
        "inconclusive",
        "supported",
        "inconclusive",
        "inconclusive",
    ]
    # Either family holds all four claims; those not decided that way have p = 1.
    assert found[1].adjusted == pytest.approx(4e-4)
    assert found[0].adjusted == pytest.approx(0.12)
    assert found[2].adjusted == pytest.approx(0.08)
    assert found[3].adjusted == 1.0
    assert found[0].reason.startswith("supported by itself (p = 0.04), but not among 4 claims")
    # A p-value that is not known counts with 1 − level: enough by itself, not among two.
    unsaid = replace(ROW, p_value=None)
    assert adjust([unsaid])[0].verdict == "supported"
    assert [v.verdict for v in adjust([unsaid, unsaid])] == ["inconclusive"] * 2


def test_only_rows_that_draws_could_have_turned_are_a_family():
    """Twenty rows of algebra and theory beside them cost the tested ones nothing."""
    tested = [replace(ROW, kind=kind, p_value=0.02) for kind in ("both roads", "simulation")]
    others = [replace(ROW, kind=kind, p_value=0.04) for kind in ("program", "theory")] * 10
    found = adjust([*others, *tested])
    assert found[:-2] == others  # as they were, with no adjusted p-value
    assert [v.verdict for v in found[-2:]] == ["supported"] * 2
    assert [v.adjusted for v in found[-2:]] == pytest.approx([0.04, 0.04])
    # A row that does not say its kind is of the family: the stricter reading.
    assert adjust([*tested, replace(ROW, p_value=0.9)])[0].adjusted == pytest.approx(0.06)


def test_claims_that_were_not_judged_count():
    row = replace(ROW, p_value=0.02)
    assert adjust([row, row])[0].verdict == "supported"
    part = adjust([row, row], claims={MAIN: 12})
    assert part[0].verdict == "inconclusive"
    assert part[0].adjusted == pytest.approx(0.24)
    assert "among 12 claims" in part[0].reason


def test_another_paper_changes_no_adjusted_p_value():
    """The family is one paper's tested rows: of the published ledger, all of its own."""
    ledger = read_ledger("results/published/ledger.json")
    published = [row for row in ledger if row.paper == MAIN]
    assert 0 < len(published) < len(ledger)  # others beside it changed nothing either
    new = [
        replace(ROW, paper="2601.22766", p_value=p, verdict=kind)
        for p, kind in ((1e-9, "supported"), (0.01, "refuted"), (0.03, "supported"))
    ]
    counts = {MAIN: sum(is_tested(row.kind) for row in published)}
    alone = adjust(published, counts)
    # But for those that the family left open, each is as it was.
    kept = [i for i, row in enumerate(published) if row.verdict != "inconclusive"]
    assert len(kept) > 0.9 * len(published)
    assert [alone[i].adjusted for i in kept] == pytest.approx([published[i].adjusted for i in kept])
    mixed = adjust([*new[:1], *published, *new[1:]], counts | {"2601.22766": 4})
    assert mixed[1 : len(published) + 1] == alone
    # Four claims of that paper, one of them not judged; each direction is a family.
    assert [mixed[i].adjusted for i in (0, -2, -1)] == pytest.approx([4e-9, 0.04, 0.09])
    assert [mixed[i].verdict for i in (0, -2, -1)] == ["supported", "refuted", "inconclusive"]
    assert "not among 4 claims" in mixed[-1].reason


@pytest.mark.parametrize("told", [0, 1, 2])
def test_a_family_is_no_smaller_than_what_was_judged(told):
    """Three rows count as three, whichever way they came out, if fewer are said to exist."""
    rows = [replace(ROW, p_value=0.02, verdict=v) for v in ("supported", "refuted", "inconclusive")]
    found = adjust(rows, claims={MAIN: told})
    assert [v.adjusted for v in found[:2]] == pytest.approx([0.06, 0.06])
    assert found[0].verdict == "inconclusive"
    assert "among 3 claims" in found[0].reason
