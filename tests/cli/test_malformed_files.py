"""Valid files, damaged at random: refused in one line, or taken for what they now say.

Each file goes through the command that reads it, in this process; ``--dry`` stops it short of
simulating. A command that ends otherwise than with code 0, or with code 2 and one line on stderr,
fails the test, as does one that takes seconds, warns, or leaves a file behind.
"""

import contextlib
import copy
import io
import json
import warnings
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sims.cli.decompose import DecomposeSpec
from sims.documents import read_yaml
from sims.errors import InputError
from sims.papers import Paper
from sims.study.schema import ExperimentSpec
from sims.validation import parse
from tests.cli.small import EXPERIMENT, SPEC, run

ROOT = Path(__file__).parents[2]
EXPERIMENT_FILE, PAPER_FILE = "experiments/small/experiment.yaml", "papers/2605.20271.yaml"
PROBLEM = SPEC["problem"]
PARTS = {
    "design": [
        {"kind": "decaying_spectrum", "power": 1.0, "rotation_seed": 3},
        {"kind": "gaussian", "covariance": [[float(i == j) for j in range(4)] for i in range(4)]},
        {"kind": "redundant_views", "noise": 0.5, "correlation": 0.2},
    ],
    "target": [
        {"kind": "constant", "value": 2.0},
        {"kind": "holder", "beta": 0.5, "levels": 3, "seed": 4},
        {"kind": "matern", "nu": 1.5, "lengthscale": 2.0, "features": 4},
        {"kind": "single_index", "rank": 2},
        {"kind": "decaying", "alpha": 0.5},
        {"kind": "explicit", "amplitude": [1.0], "frequency": [[1.0, 0.0, 2.0, 0.0]], "phase": [0]},
    ],
    "queries": [
        {"kind": "ball", "count": 2, "radius": 1.0},
        {"kind": "explicit", "count": 1, "points": [[0.0, 0.5, 0.0, 1.0]]},
    ],
    "heads": [
        {"count": 2, "width": 2, "frames": {"kind": "haar", "seed": 1}, "kernel": "softmax",
         "bandwidth": [0.7, 0.9]},
        {"count": 2, "width": 2, "frames": {"kind": "nested", "ranks": [1, 2]}, "bandwidth": 1},
        {"count": 2, "width": 1, "frames": {"kind": "planar", "angles": [0, 30]}, "bandwidth": 1},
        {"count": 2, "width": 1, "frames": {"kind": "gram", "gram": [[1, 0.5], [0.5, 1]]},
         "bandwidth": 1.0},
    ],
}  # fmt: skip


def problems():
    """Problems that between them have every kind of part."""
    yield {**SPEC, "theory": {"order": "exact", "rtol": 0.01}}
    for part, choices in PARTS.items():
        for choice in choices:
            problem = {**PROBLEM, part: choice}
            if choice.get("kind") == "redundant_views":
                problem["heads"] = {k: v for k, v in PROBLEM["heads"].items() if k != "frames"}
            yield {**SPEC, "problem": problem, "simulation": {"batches": 4, "rel_mcse": 0.5}}


EXPERIMENTS = [
    EXPERIMENT,
    {
        **EXPERIMENT,
        "paper": "2605.20271",
        "settings": {"pairs": [1, 2], "cost": {"m": 3}},
        "fidelities": {
            "smoke": {"simulation": {"batches": 2}, "settings": {"pairs": [1]},
                      "problem": {"heads.count": 3}, "grid": [{}, {"n": [8, 16]}]},
            "standard": {"simulation": {"decide": "adaptive", "max_batches": 8}},
            "paper": {"theory": {"order": "both", "exact_width": 1, "rtol": 0.01}},
        },
        "claims": [
            EXPERIMENT["claims"][0] | {"where": {"n_eff": {"at_least": 50}, "beta": 2}},
            EXPERIMENT["claims"][0] | {"regime": "slope", "test": "rate", "expected": -1.0},
            EXPERIMENT["claims"][0] | {"regime": "law", "test": "law", "law": "log", "margin": 4.0},
        ],
    },
]  # fmt: skip
PAPER = yaml.safe_load((ROOT / "papers" / "2605.20271.yaml").read_text())
PAPERS = [{**PAPER, "claims": PAPER["claims"][:3], "ours": PAPER["ours"][:2]}]

REFUSED = [  # nowhere a value
    "1:30", "017", "0o17", "0x1F", "0b11", "1_000", "yes", "No", "on", "OFF", ".inf", "-.inf",
    ".nan", "1e999", "1e-999", "2026-01-01", "1.5_0", "!!int 3", "!!python/none x", "*nowhere",
    "&a [*a]", "[" * 40 + "]" * 40, "{a: 1, a: 2}", "9" * 400, "\x01", "{", "[1", "'", "@", "`",
]  # fmt: skip
TAKEN = {  # what it says, in a file of YAML 1.2
    "0": 0, "-1": -1, "1": 1, "2": 2, "3.0": 3.0, "0.5": 0.5, "1e3": 1000.0, "1e200": 1e200,
    "1e-200": 1e-200, "10000000000000": 10**13, "99999999999999999999": 99999999999999999999,
    "true": True, "False": False, "null": None, "~": None, "nan": "nan", "inf": "inf",
    '""': "", '"1"': "1", "'0.5'": "0.5", '"yes"': "yes",
    '"a\\nb"': "a\nb", '"\\e[31m"': "\x1b[31m",
    "[]": [], "[1]": [1], "[0.5, 0.5]": [0.5, 0.5], "[[1], [1, 2]]": [[1], [1, 2]],
    "[null]": [None], "[x]": ["x"], "{}": {}, "{kind: rbf}": {"kind": "rbf"},
    "{kind: gaussian}": {"kind": "gaussian"}, "{1: 2}": {1: 2}, "rbf": "rbf",
    "gaussian": "gaussian", "exact": "exact", "softmax": "softmax", "laplace": "laplace",
    "adaptive": "adaptive",
    "float64": "float64", "ünï": "ünï",
    "{label: a, value: [1, 2]}": {"label": "a", "value": [1, 2]},
}  # fmt: skip
KEYS = [
    "",
    " ",
    "n",
    "kind",
    "seed",
    "label",
    "value",
    "a\nb",
    "\x1b",
    "ü",
    "x" * 300,
    "null",
    "1.5",
]


STRAY = [bytes([byte]) for byte in b"\0\xff\t\n\r{[&*'#%0"] + [b": ", b"- ", b"&a ", b"*a"]


class Raw(str):
    """Text that goes into the file as it is."""


class Pairs(list):
    """A mapping that may hold a key twice."""


def written(value):
    """Flow-style YAML of a value: JSON, but for what is raw."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Pairs | dict):
        items = value if isinstance(value, Pairs) else value.items()
        return "{" + ", ".join(f"{json.dumps(k)}: {written(v)}" for k, v in items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value)


def paths(value, here=()):
    """Every place in a file below its top."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*here, key)
        if isinstance(inner, dict | list):
            yield from paths(inner, (*here, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


@st.composite
def damage(draw, bases):
    """A base, the place that was changed, what stands there now if that is known, the text."""
    base = draw(st.sampled_from(bases))
    path = draw(st.sampled_from(list(paths(base))))
    tree = copy.deepcopy(base)
    parent, key = at(tree, path[:-1]), path[-1]
    kinds = ["refuse", "take", "take", "drop", "nest"]
    kind = draw(st.sampled_from(kinds + ["double", "misspell"] * isinstance(parent, dict)))
    old, means = parent[key], ...
    if kind == "refuse":
        parent[key] = Raw(draw(st.sampled_from(REFUSED)))
    elif kind == "take":
        text = draw(st.sampled_from(list(TAKEN)))
        parent[key], means = Raw(text), TAKEN[text]
    elif kind == "nest":
        means = draw(st.sampled_from([[old], {"a": old}, [old, old], {"value": old}]))
        parent[key] = means
    elif kind == "drop":
        del parent[key]
    elif kind == "misspell":
        letters, place = list(key), draw(st.integers(0, len(key) - 1))
        change = draw(st.sampled_from(["swap", "lose", "add", "other"]))
        if change == "swap":
            letters[place : place + 2] = letters[place : place + 2][::-1]
        elif change == "lose":
            del letters[place]
        elif change == "add":
            letters.insert(place, "q")
        wrong = draw(st.sampled_from(KEYS)) if change == "other" else "".join(letters)
        del parent[key]
        parent[wrong], means = old, wrong
    else:
        again = draw(st.sampled_from([old, 1, None]))
        twice = Pairs([*parent.items(), (key, again)])
        if len(path) == 1:
            tree = twice
        else:
            at(tree, path[:-2])[path[-2]] = twice
    return base, kind, path, means, written(tree)


@st.composite
def garbled(draw, bases):
    """A base, and its text with some bytes flipped, lost, put in or cut off."""
    base = draw(st.sampled_from(bases))
    data = bytearray(yaml.safe_dump(base, sort_keys=False).encode())
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(data) - 2, 0)))
        change = draw(st.sampled_from(["flip", "lose", "add", "cut", "copy"]))
        if change == "flip":
            data[place] = draw(st.integers(0, 255))
        elif change == "lose":
            del data[place + 1 : place + draw(st.integers(2, 5))]
        elif change == "add":
            data[place:place] = draw(st.sampled_from(STRAY))
        elif change == "cut":
            del data[max(place, 1) :]
        else:
            data[place:place] = data[place : place + 60]
    return base, bytes(data)


def outcome(arguments):
    """Exit code of a command that behaves."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings()
    ):  # fmt: skip
        warnings.simplefilter("error")
        code = run(*arguments)
    if code == 0:
        assert err.getvalue() == ""
    else:
        assert code == 2
        assert out.getvalue() == ""
        line = err.getvalue()
        assert line.count("\n") == 1
        assert line[:-1].isprintable()
        assert "got " in line
        assert "allowed: " in line
    assert not Path("results").exists()
    return code


FILES = {
    "problem": ("spec.yaml", list(problems()), DecomposeSpec, ["decompose", "spec.yaml", "--dry"]),
    "experiment": (EXPERIMENT_FILE, EXPERIMENTS, ExperimentSpec,
                   ["run", "small", "--fidelity", "smoke", "--dry"]),
    "paper": (PAPER_FILE, PAPERS, Paper, ["claims", "--json"]),
}  # fmt: skip


def below(differing, path):
    """Whether two files differ nowhere but at a place, or inside of what holds it."""
    return all(p[: len(path)] == path[: len(p)] for p in differing)


def differences(one, other, here=()):
    """Places where two values differ; a whole number is the number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [
            p
            for key in one.keys() | other.keys()
            for p in (
                differences(one[key], other[key], (*here, key))
                if key in one and key in other
                else [(*here, key)]
            )
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [p for i, (a, b) in enumerate(zip(one, other, strict=True))
                for p in differences(a, b, (*here, i))]  # fmt: skip
    same = one == other and isinstance(one, bool) == isinstance(other, bool)
    return [] if same else [here]


def check_damage(what, example):
    file, _, model, arguments = FILES[what]
    base, kind, path, means, text = example
    Path(file).write_text(text, encoding="utf-8")
    code = outcome(arguments)
    if kind in ("refuse", "double"):
        assert code == 2
    if code:
        return
    # Accepted: nothing but that place has changed, and there stands what the file says.
    before = parse(model, base, "base").model_dump()
    after = parse(model, read_yaml(file), file).model_dump()
    if kind == "misspell":  # a name that is free, such as that of a setting
        path = path[:-1]
        assert means in at(after, path)
        means = ...
    differ = differences(before, after)
    assert below(differ, path), differ
    if means is not ...:
        said = parse(model, changed(base, path, means), "said").model_dump()
        assert differences(said, after) == []


def changed(base, path, value):
    tree = copy.deepcopy(base)
    at(tree, path[:-1])[path[-1]] = value
    return tree


def check_garbled(what, example):
    file, _, _, arguments = FILES[what]
    Path(file).write_bytes(example[1])
    if outcome(arguments) == 0:
        theirs = yaml.load(example[1], getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        assert same_by_other_readers(read_yaml(file), theirs), file


def same_by_other_readers(ours, theirs):
    """PyYAML reads the same, but for numbers like 1e-3, which it takes for text."""
    for path in differences(ours, theirs):
        assert float(at(theirs, path)) == at(ours, path)
    return True


def examples(check, strategy, count):
    """The check as a test of so many examples, the same ones in every run."""

    @settings(
        max_examples=count, derandomize=True, database=None, deadline=5000,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def every(example):
        check(example)

    return every


@pytest.fixture
def here(folder):
    (folder / "papers").mkdir()
    (folder / PAPER_FILE).write_text(yaml.safe_dump(PAPER))
    return folder


COUNTS = {"problem": (400, 150), "experiment": (350, 150), "paper": (200, 100)}
"""Damaged and garbled files of each kind that the quick tests take; the slow ones five times."""


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", list(FILES))
def test_damaged_files(here, what, times):
    test = examples(
        lambda example: check_damage(what, example),
        damage(FILES[what][1]), COUNTS[what][0] * times,
    )  # fmt: skip
    test()


@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", list(FILES))
def test_garbled_files(here, what, times):
    test = examples(
        lambda example: check_garbled(what, example),
        garbled(FILES[what][1]), COUNTS[what][1] * times,
    )  # fmt: skip
    test()


@pytest.mark.parametrize("what", list(FILES))
def test_the_bases_are_valid(here, what):
    file, bases, model, arguments = FILES[what]
    for base in bases:
        Path(file).write_text(written(base))
        assert outcome(arguments) == 0
        assert read_yaml(file) == base
    with pytest.raises(InputError):
        parse(model, {}, file)
