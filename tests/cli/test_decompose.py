"""``sims decompose``: both methods, statements of their accuracy, and bad problems."""

import json
import re

import numpy as np
import pytest
import yaml

from sims.cli import decompose
from tests.cli.small import SPEC, run


def test_decompose(folder, capsys):
    assert run("decompose", "spec.yaml", "--json", "--seed", "3") == 0
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["simulation"]["replicates"] == 32
    assert outcome["settings"]["simulation"]["seed"] == 3
    for row in outcome["terms"].values():
        assert row["mcse"] > 0
        assert row["gap"] == pytest.approx(row["simulation"] - row["theory"])
    assert 1 <= outcome["n_eff"]["least"] <= outcome["n_eff"]["mean"] <= 64
    assert run("decompose", "spec.yaml", "--rel-mcse", "0.5") == 0
    table = capsys.readouterr().out
    assert "MSE of the ensemble" in table
    assert "Effective keys" in table


def _write(folder, theory=None, simulation=None, heads=None, **problem):
    """The small problem's file with these values in place of its own."""
    base = SPEC["problem"]
    spec = {
        "problem": {**base, **problem, "heads": base["heads"] | (heads or {})},
        "simulation": SPEC["simulation"] | (simulation or {}),
        "theory": theory or {},
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec))


def _decompose(folder, capsys, *arguments, **changes):
    """JSON outcome and printed text of the small problem, so changed."""
    _write(folder, **changes)
    assert run("decompose", "spec.yaml", "--json", *arguments) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert run("decompose", "spec.yaml", *arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return outcome, out


def test_decompose_says_where_first_order_is_rough(folder, capsys):
    """Softmax: n_third = n_eff²/n is the smaller, and warns where n_eff is above 50."""
    softmax = {"kernel": "softmax", "bandwidth": 0.9}
    outcome, text = _decompose(folder, capsys, heads=softmax, n=512)
    least = outcome["n_eff"]["least"]
    assert least > 50 > outcome["n_third"]["least"] == pytest.approx(least**2 / 512)
    assert f"n_third: least {outcome['n_third']['least']:.1f}" in text
    assert "`theory: {order: auto}`" in text
    (caution,) = outcome["simulation"]["cautions"]
    assert f"n_third = {outcome['n_third']['least']:.2g} at query " in caution
    assert f"Note: {caution}." in text
    for changes, order in (({"n": 4096}, "first"), ({"heads": softmax}, "exact")):
        outcome, text = _decompose(folder, capsys, theory={"order": "auto"}, **changes)
        assert outcome["theory"]["order"] == order
        assert "is rough" not in text


@pytest.mark.parametrize(
    ("problem", "words"),
    [({"heads": {"kernel": "laplace"}}, "heads.kernel"), ({"design": {"kind": "cube"}}, "design")],
)
def test_first_order_points_to_exact_theory(folder, capsys, problem, words):
    """Before it simulates alone."""
    _write(folder, **problem)
    assert run("decompose", "spec.yaml") == 0
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert err.startswith(f"theory of order first: does not cover {words} ")
    assert "; any by order exact" in err
    assert "Theory: does not cover" in " ".join(out.split())
    assert run("decompose", "--help") == 0
    assert "order: exact" in capsys.readouterr().out


def test_decompose_simulates_a_weight_rule_without_theory(folder, capsys):
    """The rule's options count, and no number stands where theory says nothing."""
    found = {}
    for k in (1, 16):
        heads = {"kernel": {"kind": "top_k", "k": k, "scores": "distance"}}
        outcome, text = _decompose(folder, capsys, theory={"order": "none"}, heads=heads)
        assert "Theory: not requested.\n" in text
        assert f"n_eff of a head: mean {k:.1f}, least {k:.1f}.\n" in text
        assert all(row["theory"] is None for row in outcome["terms"].values())
        found[k] = outcome["terms"]["noise_variance"]["simulation"]
    assert found[1] == pytest.approx(16 * found[16], rel=1e-6)  # σ²/k, whatever is drawn


def test_decompose_with_exact_theory_bounds_its_error(folder, capsys):
    exact = {"order": "exact", "rtol": 1e-3}
    outcome, text = _decompose(folder, capsys, theory=exact, heads={"kernel": "laplace"})
    assert outcome["n_third"] is None
    assert outcome["theory"]["reached"]
    assert outcome["theory"]["largest_defect"] < 1e-3
    for row in outcome["terms"].values():
        assert (
            0
            < row["theory_error"]
            < 2e-3 * row["theory"] + 1e-4 * outcome["terms"]["mse"]["theory"]
        )
    assert "± bound" in text
    assert "theory.rtol" not in text


def test_decompose_says_that_exact_theory_missed_its_accuracy(folder, capsys, monkeypatch):
    """In the file's words, in place of the library's warning."""
    monkeypatch.setattr("sims.theory.exact.percent.MOST_LEVEL", 0)
    outcome, text = _decompose(
        folder,
        capsys,
        theory={"order": "exact", "rtol": 1e-4},
        design={"kind": "cube"},
        dimension=2,
        heads={"kernel": "epanechnikov", "bandwidth": 0.2},
        queries={"kind": "gaussian", "count": 1, "scale": 0.5},
    )
    found = outcome["theory"]
    assert not found["reached"]
    assert found["entries"] == found["entries_missed"] == 4
    assert outcome["terms"]["mse"]["theory_error"] > 0
    assert "theory.rtol = 0.0001 was not reached in 4 of 4" in text
    assert "max_level" not in text


def test_decompose_says_which_terms_missed_their_precision(folder, capsys):
    limit = {"max_batches": 8}
    outcome, text = _decompose(folder, capsys, "--rel-mcse", "1e-6", simulation=limit)
    assert outcome["simulation"]["stopped"] == "limit"
    assert set(outcome["simulation"]["missed"]) == set(outcome["terms"])
    assert (
        "rel_mcse = 1e-06 was not reached; raise simulation.max_batches (8): squared bias, " in text
    )
    # What is negligible beside the MSE does not hold up stopping, and is named.
    outcome, text = _decompose(
        folder, capsys, "--rel-mcse", "1e-6", simulation={"negligible": 9.0} | limit
    )
    assert outcome["simulation"]["stopped"] == "precision"
    assert outcome["simulation"]["missed"] == []
    assert set(outcome["simulation"]["negligible"]) == set(outcome["terms"])
    assert "does not apply below simulation.negligible = 9: squared bias, " in text


def test_decompose_one_head(folder, capsys):
    outcome, text = _decompose(folder, capsys, heads={"count": 1})
    assert outcome["terms"]["covariance"]["simulation"] is None
    assert "–" in text


def test_faults_and_cautions_are_shown(folder, capsys):
    wave = {"kind": "explicit", "amplitude": [1.0], "frequency": [[1e9, 0, 0, 0]], "phase": [0.3]}
    outcome, text = _decompose(folder, capsys, target=wave, simulation={"precision": "float32"})
    assert outcome["simulation"]["precision"] == "float64"
    assert 0 < outcome["simulation"]["rounding"] < 1e-4
    assert "Note: float64 in place of float32" in text
    assert "Fault" not in text
    far = {"kind": "explicit", "count": 1, "points": [[9.0, 9.0, 9.0, 9.0]]}
    heads = {"kernel": "epanechnikov", "bandwidth": 0.5}
    outcome, text = _decompose(
        folder, capsys, heads=heads, queries=far, theory={"order": "exact", "rtol": 1e-3}
    )
    assert outcome["simulation"]["empty_rate"] == 1
    assert "Fault: no key was ever in reach at 2 of 2 (query, head)" in text
    assert outcome["theory"]["empty_probability"] == pytest.approx(1.0)


def test_what_float64_cannot_hold_is_one_line(folder, capsys):
    _write(folder, heads={"bandwidth": 1e-8})
    assert run("decompose", "spec.yaml") == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "heads.bandwidth: got 1e-08; allowed: about 2.1e-07 or more here" in err


def test_nothing_said_of_a_result_takes_it_along(folder, capsys, monkeypatch):
    """Whatever fails below the table, or of an outcome's further keys, is a line on stderr."""

    def fail(*_):
        raise AttributeError("no such field")

    _write(folder)
    monkeypatch.setattr(decompose, "_tables", fail)
    monkeypatch.setattr(decompose, "origin", fail)
    monkeypatch.setattr(decompose, "NOTES", dict.fromkeys(decompose.NOTES, fail))
    for option, count in (("--seed=1", 1 + len(decompose.NOTES)), ("--json", 2)):
        assert run("decompose", "spec.yaml", option) == 0
        out, err = capsys.readouterr()
        assert re.search('MSE of the ensemble +0|"mse": {', out)
        assert err.count("left out (AttributeError: no such field; ") == err.count("\n") == count


MAKES_ROWS = """
import numpy as np
from sims.problem import EmpiricalDesign

def make(dimension):
    return EmpiricalDesign(np.eye(dimension))
"""


def test_a_function_and_rows_of_ones_own(folder, capsys):
    """Theory of a function is missing; exact theory of rows agrees within 5 MCSE."""
    (folder / "my.py").write_text("def m(x, slope=1.0):\n    return slope * x[..., 0]\n")
    np.savetxt("../rows.csv", np.random.default_rng(0).normal(size=(30, 4)), delimiter=",")
    _write(folder, target={"kind": "python", "file": "my.py", "name": "m", "slope": 2.0})
    assert run("decompose", "spec.yaml", "--json", "--allow-code") == 0
    out, err = capsys.readouterr()
    assert err.startswith("theory of order first: does not cover target CustomTarget (covered: a ")
    outcome = json.loads(out)
    assert outcome["terms"]["mse"]["theory"] is None
    rows = {"kind": "empirical", "file": "../rows.csv"}
    outcome, text = _decompose(
        folder, capsys, "--allow-code", theory={"order": "exact"}, design=rows
    )
    assert "rows.csv: 30 rows of 4 columns" in text
    for term in ("noise_variance", "mse"):
        assert abs(outcome["terms"][term]["gap_in_mcse"]) < 5
        assert outcome["terms"][term]["theory_error"] < 1e-5 * outcome["terms"][term]["theory"]
    (folder / "rows.py").write_text(MAKES_ROWS)
    python = {"kind": "python", "file": "rows.py", "name": "make"}
    for design, said in (
        ({"kind": "table"}, "digits: 1,347 rows of 4 columns"),
        ({"kind": "table", "name": "text"}, "text: 1,718 rows of 4 columns"),
        (python, "rows.py: 4 rows of 4 columns"),
    ):
        outcome, text = _decompose(
            folder, capsys, "--allow-code", theory={"order": "none"}, design=design
        )
        assert outcome["read"] == [said]
        assert f"{said}." in text
