"""Mechanical mutants of some files, drawn by a walk over their syntax trees with a fixed seed.

``python tests/mutants/draw.py --seed 1 --count 4 FILE …`` prints entries for a list. The tests that
should catch them are then filled in by hand, and those that change no number are left out.
"""

import argparse
import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
"""Signs, comparisons and connectives, each with what it is taken for."""
NAMES = {"min": "max", "minimum": "maximum", "argmin": "argmax"}
NAMES |= {other: name for name, other in NAMES.items()}
KEYWORDS = {("ddof", 1): "0", ("axis", 0): "-1", ("axis", 1): "0", ("axis", -1): "0"}
Change = tuple[int, int, int, str]
"""Line, first and last column, and what stands there instead."""


def between(left: ast.expr, right: ast.expr, old: str, new: str, lines: list[str]) -> list[Change]:
    """The change of an operator between two operands on one line."""
    if left.end_lineno != right.lineno or left.end_col_offset is None:
        return []
    line = lines[right.lineno - 1].encode()[left.end_col_offset : right.col_offset].decode()
    start = left.end_col_offset + line.find(old)
    return [(right.lineno, start, start + len(old), new)] if line.count(old) == 1 else []


def changes(node: ast.AST, lines: list[str]) -> Iterator[Change]:
    """What may go wrong at a node."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in OPERATORS:
            yield from between(node.left, node.right, *OPERATORS[type(node.op)], lines)
        for number in (node.left, node.right):
            if isinstance(number, ast.Constant) and type(number.value) is int and number.value < 10:
                place = number.lineno, number.col_offset, number.end_col_offset or 0
                yield *place, str(number.value + 1)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        yield from between(node.left, node.comparators[0], *OPERATORS[type(node.ops[0])], lines)
    elif isinstance(node, ast.BoolOp):
        yield from between(node.values[0], node.values[1], *OPERATORS[type(node.op)], lines)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if not isinstance(node.operand, ast.Constant):  # -1 is mostly the last of something
            yield node.lineno, node.col_offset, node.col_offset + 1, ""
    elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
        if (node.arg, node.value.value) in KEYWORDS:
            place = node.value.lineno, node.value.col_offset, node.value.end_col_offset or 0
            yield *place, KEYWORDS[node.arg, node.value.value]
    elif isinstance(node, ast.Attribute) and node.attr in NAMES and node.end_col_offset:
        last = node.end_col_offset
        yield node.end_lineno or 0, last - len(node.attr), last, NAMES[node.attr]


def drawn(path: Path, count: int, rng: random.Random) -> Iterator[dict[str, str]]:
    """Entries of so many changes, at most one a line, with as many lines as tell their place."""
    text = path.read_text(encoding="utf-8")
    lines, tree = text.splitlines(), ast.parse(text)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    every = sorted({c for node in ast.walk(tree) for c in changes(node, lines)})
    rng.shuffle(every)
    # Annotations and messages are no arithmetic.
    word = re.compile(r"Float\[|\| None|InputError|def |check_|\braise\b")
    by_line = {c[0]: c for c in every if not word.search(lines[c[0] - 1])}
    for line, start, end, new in list(by_line.values())[:count]:
        own = lines[line - 1].encode()
        changed = (own[:start] + new.encode() + own[end:]).decode()
        first = line - 1
        while text.count("\n".join(lines[first:line]).strip()) > 1:
            first -= 1
        before = [part + "\n" for part in lines[first : line - 1]]
        inside = [f.name for f in functions if f.lineno <= line <= (f.end_lineno or 0)]
        place = inside[-1] if inside else "the module"
        yield {
            "file": str(path),
            "old": "".join([*before, lines[line - 1]]).strip(),
            "new": "".join([*before, changed]).strip(),
            "does": f"In {place}, {own[start:end].decode()} is {new or 'left out'}.",
        }


def main() -> None:
    """Print the entries."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--count", type=int, default=4, help="of each file")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    entries = [
        {"id": "", "kind": "mechanical", **entry, "tests": []}
        for file in asked.files
        for entry in drawn(Path(file), asked.count, random.Random(f"{asked.seed} {file}"))
    ]
    yaml.safe_dump(entries, sys.stdout, sort_keys=False, allow_unicode=True, width=100)


if __name__ == "__main__":
    main()
