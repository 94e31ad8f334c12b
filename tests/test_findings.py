"""The tallies of README are those of the published ledger."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS = json.loads((ROOT / "results/published/ledger.json").read_text(encoding="utf-8"))
PAPER = "2605.20271"
NAMES = {"supported": "supported", "refuted": "refuted", "open": "inconclusive"}


def tally(text):
    """Counts of verdicts in a text such as ``8 supported, 1 refuted``."""
    return Counter({NAMES[word]: int(n) for n, word in re.findall(r"(\d+) (\w+)", text)})


def check(text, rows):
    """Whether such a text, with rows true or false by algebra after a semicolon, is of the rows."""
    first, _, second = text.partition("; by algebra ")
    for said, algebra in ((first, False), (second, True)):
        counts = Counter(r["verdict"] for r in rows if (r["kind"] == "program") is algebra)
        assert tally(said) == counts


def claims(text):
    """Names of claims in a text, which stand in backticks."""
    return set(re.findall(r"`([a-z-]+)`", text))


def table(start):
    """Rows of the table of README whose first cell has ``start`` in it."""
    cells = [line.split(" | ") for line in README.splitlines() if line.startswith("| ")]
    return [(first, second) for first, second, *_ in cells if re.search(start, first)]


CLAIMS = [row for row in table("`") if "supported" in row[1]]
OURS = re.search(r"Beside the paper's, ([^:]*): ([^.]*)\.", README)


@pytest.mark.parametrize(("names", "counts"), CLAIMS, ids=[names for names, _ in CLAIMS])
def test_claims_of_the_paper(names, counts):
    check(counts, [r for r in ROWS if r["paper"] == PAPER and r["claim"] in claims(names)])


def test_every_claim_of_the_paper_is_counted_once():
    named = [name for names, _ in CLAIMS for name in claims(names)] + [*claims(OURS[2])]
    assert sorted(named) == sorted({row["claim"] for row in ROWS if row["paper"] == PAPER})
    check(OURS[1], [r for r in ROWS if r["paper"] == PAPER and r["claim"] in claims(OURS[2])])


def test_neighbours():
    number = re.compile(r"\d{4}\.\d{5}")
    found = {number.search(first)[0]: second for first, second in table("arxiv")}
    assert set(found) == {row["paper"] for row in ROWS} - {PAPER}
    for paper, counts in found.items():
        check(counts, [row for row in ROWS if row["paper"] == paper])


def test_totals():
    text = " ".join(README.split())
    said = re.search(
        r"(\d+) verdicts on the claims of eight papers .*?: ((?:\d+ \w+,? ?)+)\. "
        r"(\d+) of them rest on simulation \((\d+) of both roads\).*?; "
        r"(\d+) compare theory with theory, (\d+) are algebra",
        text,
    )
    kinds = Counter(row["kind"] for row in ROWS)
    assert int(said[1]) == len(ROWS)
    assert tally(said[2]) == Counter(row["verdict"] for row in ROWS)
    tested = kinds["simulation"] + kinds["both roads"]
    assert [*map(int, said.groups()[2:])] == [
        tested, kinds["both roads"], kinds["theory"], kinds["program"],
    ]  # fmt: skip


def test_overview_tells_the_same_totals():
    overview = (ROOT / "results/published/README.md").read_text(encoding="utf-8")
    for kind in ("simulation", "both roads", "theory", "program"):
        counts = Counter(row["verdict"] for row in ROWS if row["kind"] == kind)
        cells = [str(counts[word]) for word in ("supported", "refuted", "inconclusive")]
        assert f"| {kind} | " + " | ".join(cells) + " |" in overview
