"""Limits that keep the code readable, and what experiments leave to the framework."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("sims", "experiments", "tests", "benchmarks")
MODULES = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
LINES, PARAMETERS = 400, 12
ANY = {"sims": 0.05, "experiments": 0.10}
"""Most of the parameters, as a share, whose type may be left open (``Any``, or none)."""


def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def parameters(function):
    a = function.args
    every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    return [p for p in every if p.arg not in ("self", "cls")]


def test_files_are_short():
    sizes = {str(p.relative_to(ROOT)): len(p.read_text("utf-8").splitlines()) for p in MODULES}
    assert {name: size for name, size in sizes.items() if size > LINES} == {}


def test_functions_take_few_parameters():
    long = {
        f"{p.relative_to(ROOT)}:{f.name}": len(parameters(f))
        for p in MODULES
        for f in functions(p)
        if len(parameters(f)) > PARAMETERS
    }
    assert long == {}


@pytest.mark.parametrize("room", list(ANY))
def test_parameters_have_types(room):
    """``Any`` says nothing: numbers, arrays and containers have names of their own."""
    every = [
        (p, f, a) for p in (ROOT / room).rglob("*.py") for f in functions(p) for a in parameters(f)
    ]
    untyped = [
        f"{p.relative_to(ROOT)}:{f.name}({a.arg})"
        for p, f, a in every
        if a.annotation is None or re.search(r"\bAny\b", ast.unparse(a.annotation))
    ]
    assert len(untyped) <= ANY[room] * len(every), f"{len(untyped)} of {len(every)}: {untyped}"


PRIVATE = {
    "sharding": r"\bshard_map\b|\bMesh\(",
    "random keys of batches and replicates": r"\b(root_key|replicate_key)\b"
    r"|fold_in\([^)]*fold_in",
    "loops over replicates": r"lax\.map\([^,]*, *\(?(random_)?keys\b|vmap\([^)]*\)\((prng_)?keys\)",
    "standard errors": r"/ *np\.sqrt\((len|count|batches)|\* *\*\s*-?0\.5 *# *mcse",
    "atomic writes": r"\bos\.replace\b|mkstemp",
}
"""What the driver and the framework do for all experiments alike."""


@pytest.mark.parametrize("what", list(PRIVATE))
def test_experiments_have_no_harness_of_their_own(what):
    private = {
        str(path.relative_to(ROOT)): match[0]
        for path in (ROOT / "experiments").rglob("*.py")
        if (match := re.search(PRIVATE[what], path.read_text(encoding="utf-8")))
    }
    assert private == {}
