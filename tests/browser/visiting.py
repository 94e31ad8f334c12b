"""A visit to a page in a real browser, as :file:`visit.mjs` makes it.

Chromium is the system's; axe-core and what drives the browser come from npm: ``npm install`` in a
folder .venv/browser with a copy of package.json. Without them such tests are skipped.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
NPM = FOLDER.parents[1] / ".venv" / "browser"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
in_a_browser = pytest.mark.skipif(
    not (CHROMIUM and shutil.which("node") and (NPM / "node_modules/axe-core").is_dir()),
    reason="no Chromium, node, or axe-core in .venv/browser",
)


def visit(page, width, scheme="light", scripts=True, expression=""):
    """What was found in a window of that width: violations, errors, requests, width and text.

    ``value`` is that of the expression, which is evaluated first. Without scripts nothing looks for
    violations.
    """
    options = [str(page), str(width), scheme, str(scripts).lower(), expression]
    done = subprocess.run(
        ["node", str(FOLDER / "visit.mjs"), *options],
        env={**os.environ, "NPM_FOLDER": str(NPM), "CHROMIUM": str(CHROMIUM)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
