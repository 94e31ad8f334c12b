"""The contract of an experiment: what is fixed before the run, as one hash. No JAX."""

import ast
from pathlib import Path

from sims.errors import InputError
from sims.identity import digest
from sims.study.experiment import Experiment

PROSE = {"statement", "formula", "rationale"}
"""What a claim says of itself to readers; everything else of it decides its test."""


def contract(experiment: Experiment) -> str:
    """Sixteen hexadecimal digits of what decides an experiment's tests, prose aside.

    These are the parsed claims (all but :data:`PROSE`), the settings and the grid points that the
    fidelity has, which theory is computed, and the code that makes effects of results, without its
    comments, docstrings and layout. Titles, statements, captions, seeds and the number of
    replicates do not count, nor does the order of the keys of a mapping.

    Args:
        experiment: at its fidelity; the offset of its seeds does not count.

    Raises:
        InputError: its effects.py is no Python.
    """
    code = experiment.folder / "effects.py"
    return digest(
        [claim.model_dump(exclude=PROSE) for claim in experiment.claims],
        experiment.spec.settings_at(experiment.fidelity),
        experiment.theory.model_dump(),
        [problem for _, problem in experiment.problems],
        _meaning(code) if code.is_file() else None,
    )


class _NoText(ast.NodeTransformer):
    """Removes the strings that stand alone: docstrings, of whatever."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        value = node.value
        return None if isinstance(value, ast.Constant) and isinstance(value.value, str) else node


def _meaning(path: Path) -> str:
    """A module's code as Python writes it, whatever its layout."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise InputError(str(path), f"a mistake at line {error.lineno}", "Python") from None
    return ast.unparse(_NoText().visit(tree))
