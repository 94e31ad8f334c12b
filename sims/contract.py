"""The contract of an experiment: what is fixed before the run, as one hash. No JAX."""

import ast
from pathlib import Path

from sims.errors import InputError
from sims.experiment import ExperimentSpec
from sims.fingerprint import FIDELITIES
from sims.identity import digest

PROSE = {"statement", "formula"}
"""What a claim says of itself to readers; everything else of it decides its test."""
CODE = ("effects.py", "analysis.py")
"""The module that turns results into effects: the first of these that the experiment has."""


def contract(experiment: ExperimentSpec, folder: Path, fidelity: str) -> str:
    """Sixteen hexadecimal digits of what decides an experiment's tests, prose aside.

    These are the parsed claims (all but :data:`PROSE`), the settings and the grid points that the
    fidelity has, and the code that makes effects of results, without its comments, docstrings and
    layout. Titles, statements, captions, seeds and the number of replicates do not count, nor does
    the order of the keys of a mapping.

    Args:
        experiment: the experiment file, parsed.
        folder: the experiment's folder.
        fidelity: smoke, standard or paper.

    Raises:
        InputError: an unknown fidelity, or code that is no Python.
    """
    settings = {k: v for k, v in experiment.settings.items() if k not in FIDELITIES}
    return digest(
        [claim.model_dump(exclude=PROSE) for claim in experiment.claims],
        settings | experiment.settings.get(fidelity, {}),
        [problem for _, problem in experiment.problems(fidelity)],
        [_meaning(path) for path in map(folder.joinpath, CODE) if path.is_file()][:1],
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
