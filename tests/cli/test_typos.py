"""Misspelt words, wherever one can stand: each is named, in one line, with the nearest allowed."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import sims
from sims.errors import InputError, one_of
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.study.code import choose, shards
from tests.cli.small import EXPERIMENT, SPEC, run

ROOT = Path(__file__).parents[2]
COMMANDS = [
    ("decompse spec.yaml", "decompse", "decompose"),
    ("swep spec.yaml", "swep", "sweep"),
    ("experiment", "experiment", "experiments"),
    ("tabel small", "tabel", "table"),
    ("verfy", "verfy", "verify"),
    ("run small --fidelty smoke", "--fidelty", "--fidelity"),
    ("run small --dri", "--dri", "--dry"),
    ("decompose spec.yaml --jsn", "--jsn", "--json"),
    ("decompose spec.yaml --rel-mse 0.1", "--rel-mse", "--rel-mcse"),
    ("sweep spec.yaml --shrad 1/2", "--shrad", "--shard"),
    ("seeds --cuont 3", "--cuont", "--count"),
    ("claims --papper 2605.20271", "--papper", "--paper"),
    ("run small --fidelity smok", "smok", "smoke"),
    ("table small --format latx", "latx", "latex"),
    ("table small --order frist", "frist", "first"),
    ("schema decompos", "decompos", "decompose"),
    ("run smal", "smal", "small"),
    ("table Small --fidelity smoke", "Small", "small"),
    ("table SMALL --fidelity smoke", "SMALL", "small"),
    ("open samll --fidelity smoke", "samll", "small"),
    ("claims --paper 2605.20217", "2605.20217", "2605.20271"),
    ("sweep spec.yaml --set heads.bandwith=0.5,1.0", "bandwith", "bandwidth"),
    ("sweep spec.yaml --set haeds.bandwidth=0.5,1.0", "haeds", "heads"),
    ("sweep spec.yaml --set n=16:64:3:lgo", "lgo", "log"),
]
"""Command lines, the word that is wrong, the word that was meant."""
PROBLEM = [
    ("problem", "problm"), ("problem.dimension", "dimenson"), ("problem.noise_sd", "noise_ds"),
    ("problem.heads.bandwidth", "bandwith"), ("problem.heads.frames.angle", "angel"),
    ("problem.target.lengthscale", "lenghtscale"), ("problem.queries.count", "cuont"),
    ("simulation.batches", "bathces"), ("simulation", "simulations"), ("theory.rtol", "rtoll"),
]  # fmt: skip
"""Keys of the file of one problem, and how they are misspelt."""
VALUES: list[tuple[str, Any, str]] = [
    ("problem.heads.kernel", "gausian", "gaussian"),
    ("problem.design.kind", "isotropc", "isotropic"),
    ("problem.target.kind", "rfb", "rbf"),
    ("problem.heads.frames.kind", "equangular", "equiangular"),
    ("problem.queries.kind", "Gaussian", "gaussian"),
    ("simulation.precision", "flaot64", "float64"),
    ("theory.order", "exakt", "exact"),
    ("problem.heads.kernel", {"kind": "entmx"}, "entmax"),
    ("problem.heads.kernel", {"kind": "entmax", "alpah": 1.5}, "alpha"),
    ("problem.heads.kernel", {"kind": "sparsemax", "scores": "distanse"}, "distance"),
]
"""Its values."""
CLAIM = "claims.0."
FILE = [
    ("aim", "ame"), ("fidelities.smoke", "smkoe"), (f"{CLAIM}margin", "margn"),
    (f"{CLAIM}formula", "formla"), ("grid.0.heads.bandwidth", "heads.bandwith"),
]  # fmt: skip
"""Keys of an experiment file."""
FILE_VALUES = [
    (f"{CLAIM}test", "equivalance", "equivalence"), (f"{CLAIM}kind", "both road", "both roads"),
    (f"{CLAIM}over", ["sedes"], "seeds"), (f"{CLAIM}effects", "gasp", "gaps"),
    (f"{CLAIM}id", "decompositon", "decomposition"), (f"{CLAIM}paper", "2605.20272", "2605.20271"),
    (f"{CLAIM}formula", "#the-decompositon", "#the-decomposition"),
    ("simulation.decide", "adaptve", "adaptive"),
    ("fidelities.smoke", {"settings": {"deph": 3}}, "depth"),
    ("paper", "2604.23618", "2604.23681"),
]  # fmt: skip
"""Its values."""


def put(data, path, new, key=False):
    """A copy of nested data with the value at a dotted path, or its last key, replaced."""
    first, _, rest = path.partition(".")
    if isinstance(data, list):
        return [
            put(item, rest, new, key) if i == int(first) else item for i, item in enumerate(data)
        ]
    if first in data and rest and isinstance(data[first], dict | list):
        return {**data, first: put(data[first], rest, new, key)}
    name = path if path in data or rest else first
    if not key:
        return {**data, name: new}
    rest_of = {k: v for k, v in data.items() if k != name}
    return {**rest_of, new: data.get(name, 1)}


def said(capsys, wrong, meant):
    """Assert that one line on stderr names the wrong word and suggests the one that was meant."""
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    assert re.search(rf"(?<![\w-]){re.escape(wrong)}(?![\w-])", error), error
    assert f"(did you mean {meant}?)" in error, error


@pytest.fixture
def workplace(folder):
    """The small experiment among the suite's papers and formulas."""
    shutil.copytree(ROOT / "papers", folder / "papers")
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs/theory.md", folder / "docs")
    return folder


@pytest.mark.parametrize(("line", "wrong", "meant"), COMMANDS, ids=lambda v: str(v)[:30])
def test_on_the_command_line(workplace, capsys, line, wrong, meant):
    assert run(*line.split()) == 2
    said(capsys, wrong, meant)


@pytest.mark.parametrize(("path", "wrong"), PROBLEM)
def test_keys_of_a_problem(folder, capsys, path, wrong):
    (folder / "spec.yaml").write_text(
        yaml.safe_dump(put(SPEC | {"theory": {}}, path, wrong, key=True))
    )
    assert run("decompose", "spec.yaml") == 2
    said(capsys, wrong, path.split(".")[-1])


@pytest.mark.parametrize(("path", "wrong", "meant"), VALUES, ids=str)
def test_values_of_a_problem(folder, capsys, path, wrong, meant):
    (folder / "spec.yaml").write_text(yaml.safe_dump(put(SPEC | {"theory": {}}, path, wrong)))
    assert run("decompose", "spec.yaml") == 2
    word = wrong if isinstance(wrong, str) else next(k if k == "alpah" else v for k, v in
        reversed(wrong.items()))  # fmt: skip
    said(capsys, word, meant)


@pytest.mark.parametrize(("path", "wrong"), FILE)
def test_keys_of_an_experiment(workplace, capsys, path, wrong):
    _run(workplace, put(EXPERIMENT, path, wrong, key=True))
    meant = "heads.bandwidth" if "grid" in path else path.split(".")[-1]
    said(capsys, wrong.split(".")[-1], meant.split(".")[-1])


@pytest.mark.parametrize(("path", "wrong", "meant"), FILE_VALUES, ids=str)
def test_values_of_an_experiment(workplace, capsys, path, wrong, meant):
    data = put(EXPERIMENT | {"settings": {"depth": 2}}, path, wrong)
    step = "run" if wrong == "gasp" else "simulate"
    _run(workplace, data, step)
    word = wrong if isinstance(wrong, str) else "sedes" if isinstance(wrong, list) else "deph"
    error = capsys.readouterr().err.splitlines()[-1:]
    assert len(error) == 1
    assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", error[0]), error
    assert f"(did you mean {meant}?)" in error[0], error


def _run(workplace, data, step="simulate"):
    (workplace / "experiments/small/experiment.yaml").write_text(yaml.safe_dump(data))
    assert run(step, "small", "--fidelity", "smoke") == 2


def test_in_the_file_of_a_sweep_and_of_a_paper(workplace, capsys):
    for design, wrong, meant in (
        ({"gird": {"n": [16, 64]}}, "gird", "grid"),
        ({"grid": {"n": {"low": 16, "high": 64, "scale": "lgo"}}}, "lgo", "log"),
        ({"random": {"points": 2, "feilds": {"n": [16, 64]}}}, "feilds", "fields"),
        ({"list": [{"heads.kernal": "gaussian"}]}, "kernal", "kernel"),
    ):
        (workplace / "sweep.yaml").write_text(yaml.safe_dump(SPEC | {"sweep": design}))
        assert run("sweep", "sweep.yaml") == 2
        said(capsys, wrong, meant)
    paper = workplace / "papers/2605.20271.yaml"
    text = paper.read_text()
    for old, new in (("authors:", "autors:"), ("source: abstract", "source: abstrct")):
        paper.write_text(text.replace(old, new, 1))
        assert run("claims") == 2
        said(capsys, *(new.strip(":").split(": ")[-1], old.strip(":").split(": ")[-1]))


@pytest.mark.parametrize(
    ("config", "wrong", "meant"),
    [({"fidelty": "smoke"}, "fidelty", "fidelity"), ({"fidelity": "smok"}, "smok", "smoke"),
     ({"experiment": "smal"}, "smal", "small")],
)  # fmt: skip
def test_in_the_configuration_of_snakemake(folder, config, wrong, meant):
    with pytest.raises(InputError, match=rf"got '{wrong}'.*\(did you mean {meant}\?\)"):
        choose(config)
    assert shards({}) == 0


def test_in_python():
    task = Task(DESIGNS["isotropic"](2), TARGETS["rbf"](2), 0.5)
    frames = FRAMES["haar"](2, 2, 1)
    heads = Heads(frames, "gaussian", 0.7)
    x = [[0.0, 0.0]]
    for call, meant in (
        (lambda: Heads(frames, "guassian", 0.7), "gaussian"),
        (lambda: sims.estimate(task, heads, 8, x, 0, bathces=4), "batches"),
        (lambda: sims.estimate(task, heads, 8, x, 0, precision="float46"), "float64"),
        (lambda: sims.predict(task, heads, 8, x, order="exat"), "exact"),
        (lambda: sims.predict(task, heads, 8, x, order="exact", rtoll=0.1), "rtol"),
    ):
        with pytest.raises(InputError, match=rf"\(did you mean {meant}\?\)"):
            call()
    with pytest.raises(AttributeError, match="estimat") as caught:
        _ = sims.estimat
    assert (caught.value.name, caught.value.obj) == ("estimat", sims)  # Python suggests by these


def test_of_more_names_than_can_be_read_the_nearest_are_listed():
    names = [f"regime {k}, {index}" for k in range(30) for index in ("mean", "top")]
    said = one_of(names, "regime 12, meen")
    assert said.endswith(", … (60 in all) (did you mean regime 12, mean?)")
    assert said.count(", …") == 1
    assert said.startswith("regime 12, mean")
    assert said.count("regime") == 11
    assert one_of(names[:40], "regime 12, meen").startswith(", ".join(names[:40]))
