"""Who adds, removes: tokens of code by room, without comments, docstrings and layout."""

import ast
import subprocess
import token
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYOUT = {token.COMMENT, token.NL, token.NEWLINE, token.INDENT, token.DEDENT, token.ENDMARKER}


@pytest.mark.parametrize(
    ("room", "most"), [("sims", 195_500), ("experiments", 66_000), ("tests", 202_500)]
)
def test_room_is_within_its_budget(room, most):
    count = 0
    git = ["git", "-C", str(ROOT), "ls-files", f"{room}/*.py"]  # without experiments of one's own
    for name in subprocess.run(git, capture_output=True, text=True, check=True).stdout.split():
        path = ROOT / name
        tree = ast.parse(path.read_text(encoding="utf-8"))
        bare = [n for n in ast.walk(tree) if isinstance(n, ast.Expr)]
        prose = {n.lineno for n in bare if isinstance(getattr(n.value, "value", None), str)}
        with tokenize.open(path) as file:
            tokens = list(tokenize.generate_tokens(file.readline))
        count += sum(t.type not in LAYOUT and t.start[0] not in prose for t in tokens)
    assert count <= most
