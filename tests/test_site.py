"""The site, once built (``make docs``): whole by itself, and in a browser."""

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from docs.extensions import try_table
from docs.extensions.answer_table import inline, row_of, rows_of, write_table
from docs.extensions.answers import claim_page, in_order
from sims.judgement.summaries import Share
from sims.problem import Heads
from sims.report.answers import by_claim, further_tables, listing
from sims.report.claims import page as report_page
from sims.report.text import escape_markdown
from sims.study.ledger import read_run
from sims.study.papers import MAIN, papers
from sims.theory import predict
from tests.browser.visiting import in_a_browser, visit

ROOT = Path(__file__).parents[1]
DOCS, BUILT = ROOT / "docs", ROOT / "build" / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.md"))
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
RELATED = ("index", "search", "next", "prev")
"""Links of a page to others, which load nothing."""


class Page(HTMLParser):
    """What a page loads, links to, and can be linked at."""

    def __init__(self, path):
        super().__init__()
        self.loaded, self.links, self.ids = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.ids.add(given["id"])
        if given.get(LOADED.get(tag)) and given.get("rel") not in RELATED:
            self.loaded.append(given[LOADED[tag]])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])


page = cache(Page)


def numbers(text):
    return set(re.findall(r"−?\d[\d.]*(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?", text))


def numbers_of(answer):
    """Those of its headline share, or else of its number, and of its size."""
    share = answer.conditions.in_words() if answer.conditions else answer.result.headline()
    return numbers(share.split(";")[0] + answer.how_much())


def said_of(answer, text):
    """What follows an answer's question on its line, and in the next lines on its number."""
    question = re.escape(escape_markdown(answer.question))
    return re.findall(question + r"(.*(?:\n+- \*\*.*)?(?:\n- (?:Median|Share|Verdict).*)*)", text)


def test_pages_and_tables_have_one_share_and_size_of_an_answer():
    """Claims' pages, of the site and of the report, have them; the index no others."""
    answers = read_run(ROOT / "results/published")
    tables = [listing(paper, answers, brief=True) for paper in papers().values()]
    tables = "\n".join([*tables, *further_tables(answers).values()])
    index = (DOCS / "index.md").read_text("utf-8")
    assert set(re.findall(r"[\d.]+ ?%", index)) == {"95 %"}
    index += listing(papers()[MAIN], answers, brief=True, first=True)
    pages = {}
    for claim, rows in by_claim(answers).items():
        pages[claim] = claim_page(rows), report_page(rows)
    for answer in answers:
        if answer.status == "confirmatory":
            known = numbers_of(answer)
            for text in (*pages[answer.claim], tables):
                assert any(known <= numbers(said) for said in said_of(answer, text)), answer.id
            result = answer.result
            known |= numbers(f"{result.headline()} {result.answered}")
            known |= numbers(answer.restriction + answer.spoken())
            if isinstance(result, Share):
                known |= numbers(result.others())
            # Several parts of a law may have the same question.
            part = escape_markdown(f" ({answer.restriction})" if answer.restriction else "")
            for said in said_of(answer, index):
                assert not said.startswith(part) or numbers(said) <= known, answer.id


def test_a_claims_page_leads_to_the_published_run():
    """To its fidelity, and to the file of a failure, with the command for that file."""
    answers = by_claim(read_run(ROOT / "results/published", "paper"))
    for rows in answers.values():
        text = claim_page(rows)
        assert "`make reproduce FIDELITY=paper EXPERIMENT=" in text
        assert f'alt: "Effect of every problem, in order. {rows[0].spoken().capitalize()}' in text
        files = re.findall(r"<\.\./\.\./(results/published/counterexamples/.*?)>", text)
        assert (rows[0].problem is not None) == any(f"/{rows[0].id}.yaml" in f for f in files)
        for file in files:
            assert (ROOT / file).is_file()
        for kind, file in re.findall(r"`sims (\w+) (results/\S+)`", text):
            assert (kind == "sweep") == ("\nsweep:" in (ROOT / file).read_text("utf-8"))


def test_the_table_has_each_answer_and_each_claim_by_algebra_once():
    """An answer with its share and size, a claim by algebra with its verdict and test."""
    answers = read_run(ROOT / "results/published")
    rows = [*rows_of(in_order(by_claim(answers)))]
    left = Counter((row.question, row.answer, row.size) for row in rows)
    for answer in answers:
        row = row_of(answer)
        left[row.question, row.answer, row.size] -= 1
        if answer.status == "confirmatory":
            assert numbers_of(answer) <= numbers(f"{row.holds} {row.size}"), answer.id
    by_algebra = Counter()
    for paper in papers().values():
        for claim in paper.every:
            if claim.algebra:
                verdict = "false" if claim.counterexample else "true"
                by_algebra[inline(claim.statement), f"{verdict} by algebra", claim.algebra] += 1
    assert +left == by_algebra


def test_a_row_has_the_outcomes_and_the_verdict():
    """The bar in words; filters match a verdict without its numbers."""
    (answer,) = [one for one in read_run(ROOT / "results/published") if one.id == "hdi-monotone"]
    text = write_table({"x": [replace(answer, question="a*b?", restriction="`c*d`")]})
    assert ">a*b? (<code>c*d</code>)</a>" in text
    assert re.search(r'aria-label="holds .* %, level .* %, undecided .* %, fails .* %"', text)
    bounded = row_of(answer)._replace(
        stated="no failure found in 592 problems (at most 0.52 % fail)"
    )
    assert bounded.verdict == "no failure found"


@pytest.mark.site
def test_nothing_is_loaded_from_elsewhere():
    """Neither scripts nor fonts nor pictures."""
    pages = sorted(BUILT.rglob("*.html"))
    assert len(pages) > 50
    for path in pages:
        for given in page(path).loaded:
            parts = urlsplit(given)
            if parts.scheme == "data":
                continue
            assert not parts.netloc, f"{path}: {given}"
            assert (path.parent / unquote(parts.path)).is_file(), f"{path}: {given}"
    for path in BUILT.rglob("*.css"):
        text = path.read_text("utf-8")
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), path


@pytest.mark.site
def test_every_link_within_leads_somewhere():
    for path in BUILT.rglob("*.html"):
        for given in page(path).links:
            parts = urlsplit(given)
            if parts.scheme or parts.netloc:
                continue
            target = path.parent / unquote(parts.path) if parts.path else path
            assert target.exists(), f"{path}: {given}"
            if parts.fragment and target.suffix == ".html" and "_modules" not in path.parts:
                assert unquote(parts.fragment) in page(target).ids | {""}, f"{path}: {given}"


@pytest.mark.site
def test_notebooks_were_executed():
    for notebook in NOTEBOOKS:
        path = BUILT / "notebooks" / f"{notebook.stem}.html"
        assert re.search(r'"cell_output.*?<img', path.read_text("utf-8"), re.DOTALL), path


@pytest.mark.site
def test_the_front_page_and_every_claims_page_answer_without_scripts():
    """Answers and formulas are in the file; a claim's page says at most 400 words."""
    assert 'src="_static/try_it.svg"' in (BUILT / "try_it.html").read_text("utf-8")
    pages = {path.stem: path for path in (BUILT / "answers").glob("*.html")}
    front = (BUILT / "index.html").read_text("utf-8")
    for name in ("hdi", "hdi-monotone", "rates"):
        assert f'href="answers/{name}.html"' in front
        assert "<math" in pages[name].read_text("utf-8")
    claims = by_claim(read_run(ROOT / "results/published"))
    for name in claims:
        (text,) = re.findall(r"<article.*?</article>", pages[name].read_text("utf-8"), re.DOTALL)
        text = re.sub(r"<details.*?</details>|<math.*?</math>|<[^>]+>", " ", text, flags=re.DOTALL)
        assert len(re.findall(r"\S*\w\S*", text)) <= 400, name


@pytest.mark.site
@in_a_browser
@pytest.mark.parametrize(
    ("width", "scheme", "scripts"),
    [(1280, "light", True), (1280, "dark", True), (390, "light", True), (390, "light", False)],
)
@pytest.mark.parametrize(
    "name", ["index", "answers/index", "answers/hdi-monotone", "guide", "try_it"]
)
def test_a_page_hinders_nobody_and_nothing_sticks_out(name, width, scheme, scripts):
    found = visit(BUILT / f"{name}.html", width, scheme, scripts)
    assert found["errors"] == found["violations"] == []
    assert all(request.startswith("file:") for request in found["requests"])
    assert found["wide"] == width


@pytest.mark.site
@in_a_browser
def test_answers_are_filtered_by_every_field():
    """The count says how many rows are left; "Show all" shows them again."""
    expression = """(async () => {
        const form = document.getElementById("answers-filter");
        const count = () => document.getElementById("answers-count").textContent;
        const shown = () => document.querySelectorAll("#answers tbody tr:not([hidden])").length;
        const seen = [[count(), shown()]];
        for (const [name, value] of [
            ["text", "aligned  RANDOM"], ["paper", "2605.20271"], ["answer", "nearly always"],
            ["experiment", "house"], ["experiment", "rates"],
        ]) {
            form.elements[name].value = value;
            form.dispatchEvent(new Event("input"));
            seen.push([count(), shown()]);
        }
        form.querySelector("button").click();
        await new Promise((done) => setTimeout(done, 50));
        return [...seen, [count(), shown()]];
    })()"""
    found = visit(BUILT / "answers/index.html", 1280, expression=expression)
    shown = [number for _, number in found["value"]]
    assert [text for text, _ in found["value"]] == [f"{n} of {shown[0]} rows" for n in shown]
    assert shown == sorted(shown[:-1], reverse=True) + shown[:1]
    assert 0 == shown[5] < shown[4] < shown[2] < shown[1] < shown[0]


@pytest.mark.site
@in_a_browser
def test_try_it_adds_up_the_table_of_theory():
    """As it opens: four heads at 60 degrees and best temperature, noise 10^0.4 of the signal."""
    text = (BUILT / "_static/try_it_table.js").read_text("utf-8")
    table = json.loads(text.removeprefix("const TABLE = ").removesuffix(";\n"))
    terms = np.array(table["alone"]) / 4 + np.array(table["shared"][6]) * 3 / 4
    errors = terms @ [1, 1, 10**0.4]
    expected = f"Error\t{errors.min():.2g}\nSkill\t{1 - errors.min():.0%}".replace("%", " %")
    text = visit(BUILT / "try_it.html", 1280)["text"]
    assert expected in text
    assert f"{table['selectivity'][errors.argmin()]:.2g}" in text


def test_the_table_of_try_it_serves_any_number_of_heads():
    """Terms of one head and of two give the mean error of all pairs of the six, by theory."""
    alone, shared = try_table.compute_terms(3, 40.0, 0.3)[:, :3]
    task, heads, queries = try_table.draw_problem(3, 40.0, 0.3)
    errors = [
        predict(task, Heads(heads.frames[np.array(pair)], "gaussian", bandwidth=0.3), 256, queries)[
            "mse"
        ]
        for pair in combinations(range(6), 2)
    ]
    assert np.sum(alone + shared) / 2 == pytest.approx(np.mean(errors), rel=1e-6)
