"""The contract of an experiment: what is fixed before the run, as one hash. No JAX."""

import ast
from pathlib import Path

from sims.errors import InputError
from sims.identity import digest
from sims.study.experiment import Experiment

PROSE = {"statement", "formula", "rationale", "seen_before"}
"""What a claim says of itself to readers; everything else of it decides its test."""


def contract(experiment: Experiment) -> str:
    """Sixteen hexadecimal digits of what decides an experiment's tests, prose aside.

    These are the parsed claims (all but :data:`PROSE`), the settings and the grid points that the
    fidelity has, which theory is computed, and the code that makes effects of results, without its
    comments, docstrings and layout: effects.py and whatever modules beside it that it imports,
    itself or through others. Titles, statements, captions, what had been seen before, seeds and
    the number of replicates do not count, nor does the order of the keys of a mapping.

    Args:
        experiment: at its fidelity; the offset of its seeds does not count.

    Raises:
        InputError: its effects.py, or a module that it imports, is no Python.
    """
    code: dict[Path, str] = {}
    _read(experiment.folder / "effects.py", code)
    effects, modules = next(iter(code.values()), None), list(code.values())[1:]
    return digest(
        [claim.model_dump(exclude=PROSE) for claim in experiment.claims],
        experiment.spec.settings_at(experiment.fidelity),
        experiment.theory.model_dump(),
        [problem for _, problem in experiment.problems],
        effects,
        *sorted(modules),
    )


class _NoText(ast.NodeTransformer):
    """Removes the strings that stand alone: docstrings, of whatever."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        value = node.value
        return None if isinstance(value, ast.Constant) and isinstance(value.value, str) else node


def _read(path: Path, code: dict[Path, str]) -> None:
    """Adds a module's code, as Python writes it whatever its layout, and that of its imports."""
    if path in code or not path.is_file():
        return
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise InputError(str(path), f"a mistake at line {error.lineno}", "Python") from None
    code[path] = ast.unparse(_NoText().visit(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            names = [folder] + [folder / alias.name for alias in node.names]
            for name in names:
                _read(name.with_suffix(".py"), code)
