"""``kind: python`` and data files from the command line: what is said when, what runs again."""

import json

import numpy as np
import pytest
import xarray as xr
import yaml

from tests.cli.small import EXPERIMENT, SPEC, run

MY = "import jax.numpy as jnp\n\ndef m(x, slope=1.0):\n    return jnp.tanh(slope * x[..., 0])\n"
TARGET = {"kind": "python", "file": "my.py", "name": "m", "slope": 2.0}


@pytest.fixture
def own(folder):
    """A file of a problem, and my.py beside it, in a folder of their own."""
    inside = folder / "inside"
    inside.mkdir()
    (inside / "my.py").write_text(MY)
    np.savetxt(inside / "rows.csv", np.random.default_rng(0).normal(size=(30, 4)), delimiter=",")
    write(inside)
    return inside


def write(inside, theory=None, **problem):
    spec = {**SPEC, "problem": {**SPEC["problem"], "target": TARGET, **problem}}
    spec |= {} if theory is None else {"theory": theory}
    (inside / "own.yaml").write_text(yaml.safe_dump(spec))


def test_what_theory_does_not_cover_is_said_before_and_simulated(own, capsys):
    """One line on stderr; the table and its JSON say so where theory would stand."""
    assert run("decompose", "inside/own.yaml", "--dry") == 0
    assert "first; does not cover target function m" in capsys.readouterr().out
    assert run("decompose", "inside/own.yaml", "--json") == 0
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert err.startswith("theory of order first: does not cover target function m (covered: a ")
    outcome = json.loads(out)
    assert "does not cover" in outcome["theory"]["uncovered"]
    assert outcome["terms"]["mse"]["theory"] is None
    assert outcome["terms"]["mse"]["simulation"] > 0
    assert len(outcome["settings"]["problem"]["target"]["content"]) == 16
    assert run("decompose", "inside/own.yaml") == 0
    assert "Theory: does not cover target function m" in " ".join(capsys.readouterr().out.split())


def test_both_roads_take_a_function_and_rows(own, capsys):
    """Exact theory of an empirical design has no error to speak of: within 5 MCSE."""
    write(own, {"order": "exact"}, design={"kind": "empirical", "file": "rows.csv"})
    assert run("decompose", "inside/own.yaml", "--dry") == 0
    assert "rows.csv: 30 rows of 4 columns\n" in capsys.readouterr().out
    assert run("decompose", "inside/own.yaml", "--json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    outcome = json.loads(out)
    assert outcome["read"] == ["rows.csv: 30 rows of 4 columns"]
    assert outcome["theory"]["uncovered"] is None
    for term in ("noise_variance", "mse"):
        assert abs(outcome["terms"][term]["gap_in_mcse"]) < 5
        assert outcome["terms"][term]["theory_error"] < 1e-5 * outcome["terms"][term]["theory"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": TARGET | {"file": "no.py"}}, "problem.target.file: got 'no.py: No such file"),
        ({"target": TARGET | {"name": "mm"}}, "did you mean m?"),
        ({"target": TARGET | {"slop": 1}}, "slop"),
        ({"target": {"kind": "python", "file": "my.py"}}, "name: got 'nothing'"),
        ({"target": TARGET | {"content": 3}}, None),
        ({"design": {"kind": "empirical", "file": "no.npy"}}, "problem.design.file"),
        ({"design": {"kind": "empirical", "file": "my.py"}}, "design.file"),
    ],
)
@pytest.mark.parametrize("command", ["decompose", "sweep"])
def test_mistakes_are_one_line_before_any_work(own, capsys, command, change, words):
    write(own, **change)
    code = run(command, "inside/own.yaml", "--dry")
    out, err = capsys.readouterr()
    if words is None:  # what a file says of its content is not believed
        assert code == 0
        return
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_an_experiment_says_at_once_what_theory_does_not_cover(folder, capsys):
    """`sims run --dry` and the run itself; its file stands beside experiment.yaml."""
    home = folder / "experiments" / "small"
    (home / "my.py").write_text(MY)
    spec = {**EXPERIMENT, "problem": {**EXPERIMENT["problem"], "target": TARGET}}
    (home / "experiment.yaml").write_text(yaml.safe_dump(spec))
    for arguments in (["--dry"], []):
        assert run("run", "small", *arguments) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert "target: got 'function m'; allowed: a trigonometric series (first order)" in err
    assert not (folder / "results" / "standard" / "small" / "simulation.nc").exists()


def test_a_sweep_runs_again_where_its_file_was_edited(own, capsys):
    """And finds what it has where nothing changed; shards see the same points."""
    axes = ["--set", "target.slope=1.0,2.0", "--output", "out.nc"]

    def swept(*more):
        assert run("sweep", "inside/own.yaml", *axes, *more) == 0
        capsys.readouterr()

    swept("--shard", "1/2")
    swept("--shard", "2/2")
    swept()
    first = xr.load_dataset("out.nc")
    made = {path.name for path in own.parent.glob(".points/*")}
    swept()
    assert {path.name for path in own.parent.glob(".points/*")} == made
    assert list(first["slope"].values) == [1.0, 2.0]
    assert np.isnan(first["mse_theory"]).all()
    (own / "my.py").write_text(MY.replace("jnp.tanh(", "3 * jnp.tanh("))
    swept()
    again = xr.load_dataset("out.nc")
    assert (again["signal_variance"] / first["signal_variance"]).values == pytest.approx(9.0)
    assert json.loads(again.attrs["specification"])["problem"]["target"]["name"] == "m"


def test_the_schema_has_it(capsys):
    for name in ("decompose", "sweep", "problem"):
        assert run("schema", name) == 0
        schema = json.loads(capsys.readouterr().out)
        choice = schema["$defs"]["PythonChoice"]
        assert choice["additionalProperties"] is True
        assert set(choice["required"]) == {"kind", "file", "name"}
        text = json.dumps(schema)
        assert text.count("#/$defs/PythonChoice") >= 3
        for kind in ("student", "empirical", "toeplitz"):
            assert f'"{kind}"' in text
