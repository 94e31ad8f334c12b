"""The glossary: every word once, every paper, and no link into nothing."""

import re
from collections import Counter
from pathlib import Path

TEXT = Path(__file__).parents[1].joinpath("docs/glossary.md").read_text(encoding="utf-8")
WORDS, SYMBOLS = TEXT.split("\n## Symbols of eight papers\n")
PAPERS = {
    "2605.20271", "2601.22766", "2604.23681", "2511.20698", "2604.08829", "2512.05916",
    "2511.04217", "2505.13544",
}  # fmt: skip


def rows(text):
    """First and last cells of all tables' rows, without headings."""
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(row[0], row[-1]) for row in cells if row[0] not in ("word", "letter", "arXiv")]


def test_every_word_has_one_meaning():
    words = [word.strip() for first, _ in rows(WORDS) for word in first.split(",")]
    assert len(words) > 80
    assert [word for word, count in Counter(words).items() if count > 1] == []
    assert all(meaning for _, meaning in rows(WORDS))


def test_every_letter_that_clashes_has_one_row():
    clashes, papers = SYMBOLS.split("\n### Paper by paper\n")
    letters = [first for first, _ in rows(clashes)]
    assert {"τ", "s", "ν", "ρ", "h", "Δ"} < set(letters)
    assert len(letters) == len(set(letters))
    assert set(re.findall(r"\d{4}\.\d{5}", clashes)) <= PAPERS
    assert {first for first, _ in rows(papers)} == PAPERS


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert links
    assert all(Path(__file__).parents[1].joinpath("docs", link).is_file() for link in links)
