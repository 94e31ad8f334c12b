"""Other seeds: what counts as a verdict that turned."""

from dataclasses import replace

from sims.cli.seeds import compare
from sims.judgement import Verdict

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
