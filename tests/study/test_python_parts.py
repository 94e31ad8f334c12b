"""Parts of a problem from files of the user's own: what they may be, and that content counts."""

import functools
import os
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from sims.base.errors import InputError
from sims.base.validation import parse
from sims.problem import CustomDesign, StudentDesign
from sims.study import code, python_parts
from sims.study.choosing import choose
from sims.study.declaration import Declaration
from sims.study.python_parts import PythonChoice
from sims.study.referenced_files import resolve_files
from sims.study.specification import ProblemSpec
from sims.weights import WeightRule
from tests.cli.small import EXPERIMENT, SPEC, run, write

ROOT = Path(__file__).parents[2]
CONSENT = {"allow_code": True}
MY = """
import functools
import jax
import jax.numpy as jnp
from sims.problem import Kernel, StudentDesign
from sims.weights import WeightRule
from .beside import twice

def m(x, slope=1.0):
    return twice(slope * x[..., 0])

slow = jax.jit(functools.partial(m, slope=3.0))

def log_kernel(query, key, bandwidth, power=1.0):
    return -power * jnp.sum(jnp.abs((query - key) / bandwidth), axis=0)

whole = Kernel("whole", log_kernel)
student = StudentDesign(jnp.eye(4), 5.0)

def made(power=1.0):
    return Kernel("made", lambda q, k, b: log_kernel(q, k, b, power))

def rule():
    return WeightRule("soft", log_kernel, jax.nn.softmax)

def nothing():
    return None

def law(dimension, freedom=3.0):
    return StudentDesign(jnp.eye(dimension), freedom)

def sampler(key, n, dtype, size=1.0):
    each = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(n))
    return size * jax.vmap(lambda own: jax.random.normal(own, (4,), dtype))(each)

def raises(dimension):
    raise KeyError("of mine")
"""
BESIDE = "def twice(x):\n    return 2.0 * x\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(MY)
    (tmp_path / "beside.py").write_text(BESIDE)
    return tmp_path


def choice(name, file="my.py", **options):
    data = {"kind": "python", "file": file, "name": name, **options}
    return PythonChoice.model_validate(data, context=CONSENT)


def test_what_a_name_may_stand_for(folder):
    x = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_allclose(python_parts.target(choice("m", slope=3.0), 4)(x), 6 * x[:, 0])
    np.testing.assert_allclose(python_parts.target(choice("slow"), 4)(x), 6 * x[:, 0])
    query, key = jnp.array([1.0]), jnp.array([3.0])
    for name, options, expected in (
        ("log_kernel", {}, -2.0),
        ("log_kernel", {"power": 3.0}, -6.0),
        ("whole", {}, -2.0),
        ("made", {"power": 3.0}, -6.0),
    ):
        kernel = python_parts.kernel(choice(name, **options))
        assert float(kernel.log_value(query, key, 1.0)) == expected
    assert isinstance(python_parts.kernel(choice("rule")), WeightRule)
    assert isinstance(python_parts.design(choice("student"), 4), StudentDesign)
    assert float(python_parts.design(choice("law", freedom=7.0), 4).freedom) == 7.0
    drawn = python_parts.design(choice("sampler", size=2.0), 4)
    assert isinstance(drawn, CustomDesign)
    assert float(drawn.covariance[0, 0]) == pytest.approx(4.0, rel=0.2)


def test_the_same_choice_is_the_same_function(folder):
    """So that points of a sweep share their compiled programs."""
    first, second, other = (
        python_parts.kernel(choice("log_kernel", power=p)) for p in (2.0, 2.0, 3.0)
    )
    assert first is second
    assert first != other


@pytest.mark.parametrize(
    ("part", "name", "options", "words"),
    [
        ("target", "n", {}, "my.py: name: got 'n'; allowed: "),
        ("target", "twice", {}, "my.py: name: got 'twice'; allowed: defined in this file: m, "),
        (
            "target",
            "m",
            {"slop": 1.0},
            "my.py: m: got 'm(x, slope=1.0) with options slop'; allowed: m(x",
        ),
        ("target", "log_kernel", {}, "log_kernel(query, key, bandwidth, power=1.0)"),
        ("target", "student", {}, "StudentDesign"),
        ("target", "nothing", {}, "nothing()"),
        ("kernel", "nothing", {}, "NoneType made"),
        ("kernel", "whole", {"power": 1.0}, "Kernel with options power"),
        ("kernel", "m", {}, "m(x, slope=1.0)"),
        ("design", "raises", {}, "KeyError: 'of mine'"),
        ("design", "m", {}, "my.py: m: got "),
        ("design", "rule", {}, "rule()"),
    ],
)
def test_what_a_name_may_not_stand_for_is_one_line(folder, part, name, options, words):
    given = (choice(name, **options), 4)[: 1 if part == "kernel" else 2]
    with pytest.raises(InputError) as error:
        getattr(python_parts, part)(*given)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def m(x:", "SyntaxError"),
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("1 / 0", "ZeroDivisionError"),
        ("from .nobody import m", "ModuleNotFoundError"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line(folder, text, words):
    (folder / "bad.py").write_text(text)
    with pytest.raises(InputError, match=words) as error:
        python_parts.target(choice("m", "bad.py"), 4)
    assert "\n" not in str(error.value)


def test_an_edited_file_is_read_again_at_once(folder, monkeypatch):
    """Within the same second, and with as many bytes."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    x = jnp.ones((1, 4))
    for size in (2.0, 3.0):
        (folder / "own.py").write_text(f"def m(x):\n    return {size} * x[..., 0]\n")
        os.utime(folder / "own.py", (1, 1))
        assert float(python_parts.target(choice("m", "own.py"), 4)(x)[0]) == size


def own_problem(**changes):
    part = {"kind": "python", "file": "my.py", "name": "m"}
    return {**SPEC["problem"], "target": part, **changes}


def test_located_finds_files_and_knows_their_content(folder, monkeypatch):
    """Relative to the YAML file's folder, also of modules beside; other parts stay as they are."""
    before = resolve_files(own_problem(), folder)
    assert before["heads"] == SPEC["problem"]["heads"]
    assert before["target"]["file"] == "my.py"
    (folder / "deep").mkdir()
    monkeypatch.chdir(folder / "deep")
    assert resolve_files(own_problem(), folder)["target"] == {
        **before["target"],
        "file": str(folder / "my.py"),
    }
    rows = {"kind": "empirical", "file": "rows.csv"}
    contents = set()
    for text in ("1,2,3,4\n5,6,7,8\n", "1,2,3,4\n5,6,7,9\n"):
        (folder / "rows.csv").write_text(text)
        contents.add(resolve_files(rows, folder)["content"])
    assert len(contents) == 2


def test_redundant_views_take_a_function_of_the_latent_coordinates(folder):
    views = {"kind": "redundant_views", "noise": 0.5}
    heads = {key: value for key, value in SPEC["problem"]["heads"].items() if key != "frames"}
    own = resolve_files(own_problem(design=views, heads=heads), folder)
    spec = parse(ProblemSpec, own, "p", context=CONSENT)
    target = spec.build().task.target
    assert target.dimension == 4 + 2
    assert float(target(jnp.arange(6.0)[None] + 1)[0]) == 2.0


STUDY = """
import numpy as np
import xarray as xr

from sims.judgement.effects import gap
from sims.study.drawn import DrawnStudy


class Small(DrawnStudy):
    def theory(self, problem):
        return xr.Dataset({"mse": 1.0})

    def effects(self, results):
        batches = np.stack([one["mse"] for one in results.estimates.values()])
        return {"mse": gap(batches, np.ones(len(batches)))}
"""


def test_an_edited_file_makes_an_experiment_another(folder, capsys):
    """A step depends on it, and earlier results are refused."""
    law = EXPERIMENT["law"] | {"problem": own_problem()}
    home = write({"study.py": STUDY}, law=law, settings={"problems": 1})
    (home / "beside.py").write_text(BESIDE)

    with pytest.raises(InputError, match=r"my\.py"):
        choose({"experiment": "small"})
    (home / "my.py").write_text(MY)
    before = code.digest("simulate", Declaration.read(home))
    assert [run("step", step, "small") for step in ("simulate", "predict")] == [0, 0]
    (home / "my.py").write_text(MY.replace("slope=1.0", "slope=2.0"))
    assert code.digest("simulate", Declaration.read(home)) != before
    capsys.readouterr()
    assert run("step", "tabulate", "small") == 2
    assert "simulation.nc: got 'problem " in capsys.readouterr().err


def test_a_rule_of_a_file_is_the_one_that_python_has():
    """The example beside the documentation, part by part."""
    spec = functools.partial(choice, file=str(ROOT / "docs" / "examples" / "my.py"))
    assert python_parts.kernel(spec("pruned", share=0.25)).weights.args == (0.25,)
    weights = python_parts.kernel(spec("pruned"))(jnp.zeros(1), jnp.array([[0.0, 0.1, 9.0]]), 1.0)
    assert float(weights.sum()) == pytest.approx(1.0)
    assert float(weights[2]) == 0.0
