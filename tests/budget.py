"""Who adds, removes: tokens of code by room, without comments, docstrings and layout (make lint).

Only the project's folders count, those named here: a folder that somebody adds has no budget.
"""

import ast
import subprocess
import sys
import token
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYOUT = {token.COMMENT, token.NL, token.NEWLINE, token.INDENT, token.DEDENT, token.ENDMARKER}
BUDGETS = {"sims": 202_000, "experiments": 72_000, "tests": 211_000}
FOLDERS = {
    "sims": "advise attention base cli figures inspect judgement montecarlo problem report "
    "simulation steps study theory weights",
    "experiments": "allocation angles collapse hidden_scores hierarchy house kq_svd "
    "lottery_tickets merging rates temperature trained_models training unification values",
    "tests": "advise attention benchmarks browser cli experiments faults figures gpu inspect "
    "judgement montecarlo problem simulation slurm study theory weights",
}


def files_of(room: str) -> list[Path]:
    """Python files of a room in its named folders, under version control."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", f"{room}/*.py"]
    names = subprocess.run(git, capture_output=True, text=True, check=True).stdout.split("\0")
    paths = []
    for name in filter(None, names):
        _, *folders, _ = Path(name).parts
        if not folders or folders[0] in FOLDERS[room].split():
            paths.append(ROOT / name)
    return paths


def tokens_of(path: Path) -> int:
    """Number of tokens of code in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    prose = {node.lineno for node in bare if isinstance(getattr(node.value, "value", None), str)}
    with tokenize.open(path) as file:
        tokens = list(tokenize.generate_tokens(file.readline))
    return sum(one.type not in LAYOUT and one.start[0] not in prose for one in tokens)


def main() -> int:
    """Print what is above its budget, and return the exit code."""
    above = 0
    for room, most in BUDGETS.items():
        count = sum(tokens_of(path) for path in files_of(room))
        if count > most:
            above += 1
            print(f"{room}: {count:,} tokens of code; at most {most:,}: remove what you add")
    return above


if __name__ == "__main__":
    sys.exit(main())
