"""The page in a real browser: Chromium, with axe-core for what hinders readers.

Chromium is the system's; axe-core and what drives the browser come from npm: ``npm install`` in a
folder .venv/browser with a copy of tests/browser/package.json. Without them this is skipped.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sims import files
from sims.judgement import read_ledger, write_verdicts
from sims.report import page

ROOT = Path(__file__).parents[1]
NPM = ROOT / ".venv" / "browser"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
NAMES = ["rates", "unification"]
LEDGER = ROOT / "results" / "published" / "ledger.json"


@pytest.mark.skipif(
    not (CHROMIUM and shutil.which("node") and (NPM / "node_modules/axe-core").is_dir()),
    reason="no Chromium, node, or axe-core in .venv/browser",
)
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_hinders_readers_and_nothing_sticks_out(tmp_path, monkeypatch, width):
    """Of published rows and figures, with all that can be unfolded open."""
    rows = [row for row in read_ledger(LEDGER) if row.experiment in NAMES]
    write_verdicts(rows, tmp_path / "ledger.json", "ledger.json of standard")
    for name in NAMES:
        (tmp_path / name).mkdir()
        shutil.copy(LEDGER.parent / f"{name}.png", tmp_path / name / "figure.png")
        caption = f"**What {name} found.** It holds that $a_1 = b$.\n\n$$\na^2 = b\n$$\n"
        files.write(caption, tmp_path / name / "caption.md", f"caption.md of {name} at standard")
    monkeypatch.setattr(page, "experiments", lambda: NAMES)
    monkeypatch.setattr("sims.report.origins.provenance", lambda *_: {"versions": {"jax": "1"}})
    report = tmp_path / "report.html"
    page.write_report(tmp_path, "standard", report)
    done = subprocess.run(
        ["node", str(ROOT / "tests/browser/visit.mjs"), str(report), str(width)],
        env={**os.environ, "NPM_FOLDER": str(NPM), "CHROMIUM": str(CHROMIUM)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["errors"] == []
    assert found["requests"] == [report.as_uri()], "a page loads nothing but itself"
    assert found["violations"] == []
    assert found["wide"] == width
