"""The page in a real browser: Chromium, with axe-core for what hinders readers.

Chromium is the system's; axe-core and what drives the browser come from npm: ``npm install`` in a
folder .venv/browser with a copy of tests/browser/package.json. Without them these are skipped.
"""

import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from sims import files
from sims.judgement import read_ledger, write_verdicts
from sims.report import page

ROOT = Path(__file__).parents[1]
NPM = ROOT / ".venv" / "browser"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
NAMES = ["angles", "decomposition", "diversity"]
LEDGER = ROOT / "results" / "published" / "ledger.json"
SHOWN = "[...document.querySelectorAll('.verdicts tbody tr')].filter(row => !row.hidden)"
OPEN = """
    document.querySelectorAll("details").forEach((folded, place) => {
        folded.open = !folded.closest("table") || place % 20 === 0;
    });
"""

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and shutil.which("node") and (NPM / "node_modules/axe-core").is_dir()),
    reason="no Chromium, node, or axe-core in .venv/browser",
)


@pytest.fixture(scope="module")
def ledger():
    """The published rows of three experiments."""
    rows = read_ledger(LEDGER)
    return [row for row in rows if row.experiment in NAMES]


@pytest.fixture(scope="module")
def report(tmp_path_factory, ledger):
    """A page of these rows and the published figures, with captions of its own."""
    folder = tmp_path_factory.mktemp("standard")
    write_verdicts(ledger, folder / "ledger.json", "ledger.json of standard")
    for name in NAMES:
        (folder / name).mkdir()
        shutil.copy(LEDGER.parent / f"{name}.png", folder / name / "figure.png")
        caption = f"**What {name} found.** It holds that $a_1 = b$.\n\n$$\na^2 = b\n$$\n"
        files.write(caption, folder / name / "caption.md", f"caption.md of {name} at standard")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "experiments", lambda: NAMES)
        patch.setattr("sims.report.origins.provenance", lambda *_: {"versions": {"jax": "1"}})
        page.write_report(folder, "standard", folder / "report.html")
    return folder / "report.html"


def visit(report, *visits):
    """What was found on visits to the page, each a dictionary as visit.mjs takes it."""
    done = subprocess.run(
        ["node", str(ROOT / "tests/browser/visit.mjs"), str(report), json.dumps(visits)],
        env={**os.environ, "NPM_FOLDER": str(NPM), "CHROMIUM": str(CHROMIUM)},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for one in found:
        assert one["errors"] == []
        assert one["requests"] == [report.as_uri()[:80]]  # a page loads nothing but itself
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_hinders_readers_and_nothing_sticks_out(report, width, dark):
    as_it_opens, unfolded = visit(
        report,
        {"width": width, "dark": dark, "axe": True},
        {"width": width, "dark": dark, "axe": True, "script": OPEN},
    )
    for found in (as_it_opens, unfolded):
        assert found["violations"] == []
        assert found["size"][0] == width


def test_first_screen_says_what_was_tested_counts_and_shows_a_figure(report, ledger):
    script = """
        const top = (what) => document.querySelector(what).getBoundingClientRect().top;
        return [document.querySelector("header").innerText, top(".counts") / innerHeight,
            top("header img") / innerHeight];
    """
    for found in visit(report, {"width": 1280, "script": script}, {"width": 390, "script": script}):
        text, counts, figure = found["value"]
        for verdict, count in Counter(row.verdict for row in ledger).items():
            assert f"{count}\n{verdict}" in text.replace(" ", "\n")
        assert max(counts, figure) < 0.85


def test_rows_are_filtered_and_sorted(report, ledger):
    script = f"""
        const form = document.getElementById("filters");
        const type = (name, value) => {{
            form[name].value = value;
            form[name].dispatchEvent(new Event("input", {{ bubbles: true }}));
            return {SHOWN}.map((row) => [...row.cells].map((cell) => cell.innerText.trim()));
        }};
        const refuted = type("verdict", "refuted");
        const angles = (type("verdict", ""), type("claim", "angles"));
        const words = (type("claim", ""), type("words", "haar-random noise"));
        const sorted = (type("words", ""), type("sort", "claim"));
        document.querySelectorAll(".verdicts th button")[1].click();
        const reversed = type("words", "");
        form.reset();
        await new Promise((done) => setTimeout(done, 50));
        return {{ refuted, angles, words, sorted, reversed, all: type("words", "").length,
            said: document.getElementById("shown").textContent }};
    """
    (found,) = visit(report, {"width": 1280, "script": script})
    value = found["value"]
    assert len(value["refuted"]) == sum(row.verdict == "refuted" for row in ledger)
    assert {row[0] for row in value["refuted"]} == {"refuted"}
    assert len(value["angles"]) == sum(row.claim == "angles" for row in ledger)
    words = [row.statement.lower() for row in ledger]
    assert len(value["words"]) == sum("haar-random" in text and "noise" in text for text in words)
    claims = [row[1] for row in value["sorted"]]
    assert claims == sorted(claims)
    assert [row[1] for row in value["reversed"]] == claims[::-1]
    assert value["all"] == len(ledger)
    assert value["said"] == f"{len(ledger)} of {len(ledger)} verdicts."


def test_a_claim_is_two_clicks_away(report, ledger):
    """From the first screen: the claim's name, then a row with statement, picture and reason."""
    script = f"""
        document.querySelector('header a[data-claim="angles"]').click();
        await new Promise((done) => setTimeout(done, 200));
        const rows = {SHOWN};
        rows[0].querySelector("summary").click();
        const seen = rows[0].querySelector("details");
        return [rows.length, seen.open, seen.innerText, seen.querySelectorAll("svg rect").length];
    """
    (found,) = visit(report, {"width": 1280, "script": script})
    rows = [r for r in ledger if r.claim == "angles" and r.experiment == "angles"]
    count, is_open, text, bands = found["value"]
    assert (count, is_open, bands) == (len(rows), True, 1)
    assert rows[0].statement in text
    assert rows[0].reason[1:] in text


def test_without_scripts_the_table_can_be_read(report, ledger):
    script = """
        const rows = document.querySelectorAll(".verdicts tbody tr");
        rows[0].querySelector("summary").click();
        return [rows.length, rows[0].innerText, document.getElementById("filters").hidden];
    """
    (found,) = visit(report, {"width": 1280, "scripts": False, "script": script})
    count, text, hidden = found["value"]
    assert (count, hidden) == (len(ledger), True)
    assert ledger[0].statement in text


def test_a_link_opens_what_it_leads_to(report):
    script = """
        const link = document.querySelector('.claims a[href="#theory-the-angle-law"]');
        link.click();
        await new Promise((done) => setTimeout(done, 300));
        const section = document.getElementById("theory-the-angle-law");
        return [section.open, section.querySelectorAll("math").length > 5,
            document.querySelector("math").getBoundingClientRect().height > 0];
    """
    (found,) = visit(report, {"width": 390, "script": script})
    assert found["value"] == [True, True, True]


def test_print_shows_captions_and_hides_what_cannot_be_clicked(report):
    script = """
        window.dispatchEvent(new Event("beforeprint"));
        const shown = (what) => document.querySelector(what).getBoundingClientRect().height > 0;
        const colour = getComputedStyle(document.body).backgroundColor;
        return [shown(".finding details.printed p"), shown("nav.top"), shown("#filters"), colour];
    """
    (found,) = visit(report, {"width": 1280, "dark": True, "print": True, "script": script})
    assert found["value"] == [True, False, False, "rgb(255, 255, 255)"]
