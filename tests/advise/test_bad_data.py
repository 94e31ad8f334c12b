"""Bad input to ``sims advise``: one line that says what, where and what is allowed, exit code 2."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.small import run

ROWS = [f"{k % 7},{k * k % 11},{k % 5}" for k in range(30)]


def table(*lines, header="a,b,y"):
    return "\n".join([header, *lines]) + "\n"


def changed(row, text):
    return table(*ROWS[:row], text, *ROWS[row + 1 :])


CSV = [
    ("", "0 bytes'; allowed: 1 to"),
    ("a,b,y\n", "got 'a header and no rows'"),
    (table(ROWS[0]), "got '1 rows'; allowed: 20 rows or more"),
    (changed(4, "1,red,2"), "column b: got 'red in row 5'; allowed: numbers (encode cat"),
    (changed(4, "1,,2"), "column b: got 'nan in row 5'; allowed: finite numbers (fill gaps first)"),
    (changed(4, "1,2,3,4"), "Expected 3 fields in line 6, saw 4"),
    (table(*ROWS[:19] * 2), "got '19 distinct rows'; allowed: 20 rows or more"),
    (changed(4, "1,inf,2"), "column b: got 'inf in row 5'; allowed: finite numbers"),
    (changed(4, "1,True,2"), "column b: got 'True in row 5'"),
    (table(*ROWS, header="a,a,y"), "got 'duplicate column a'"),
    (table(*ROWS, header="a,b,z"), "--target: got 'y'; allowed: a column: a, b, z"),
    (table(*ROWS, header="a,b,Y"), "(did you mean Y?)"),
    (table(*ROWS, header="a,y"), "3 columns for 2 names"),
    (
        table(*ROWS).replace(",", ";"),
        "got \"columns separated by ';'\"; allowed: a header and rows",
    ),
    (table(*ROWS).replace(",", "\t"), "got \"columns separated by '\\\\t'\"; allowed: a header"),
    ("# made by hand\n" + table(*ROWS), "got 'a comment in line 1: # made by hand'; allowed: a he"),
    (changed(4, "# a note"), "column a: got '# a note in row 5'; allowed: no comments"),
    (table(*(f"{k},{k},3" for k in range(30))), "data, y: got 'constant 3'"),
    (table(*(f"1,2,{k}" for k in range(30))), "data, X: got 'only constant columns'"),
    ("y\n" + "1\n" * 30, "data, X: got 'float64 of shape (30, 0)'"),
    (b"\xff\xfe" + table(*ROWS).encode("utf-16-le"), "invalid start byte"),
    (b"a,b,y\n\x00\x00\n", "allowed: "),
]
X, Y = np.arange(60.0).reshape(30, 2) % 7, np.arange(30.0)
NPZ = [
    ({"X": X}, "got 'X'; allowed: arrays of numbers X (n, d), y"),
    ({"X": X, "y": Y[:-1]}, "got '30 rows of X, 29 of y"),
    ({"X": X[:, 0], "y": Y}, "data, X: got 'float64 of shape (30,)'"),
    ({"X": X.astype(str), "y": Y}, "data, X: got '<U"),
    ({"X": X.astype(object), "y": Y}, "Object arrays cannot be loaded"),
    ({"X": X.astype(complex), "y": Y}, "data, X: got 'complex128"),
    ({"X": X, "y": np.where(Y == 3, np.nan, Y)}, "column y[:, 0]: got 'nan in row 4'"),
    ({"X": X, "y": np.stack([Y, 0 * Y], 1)}, "data, y: got 'constant 0'"),
    ({"X": X[:, :0], "y": Y}, "data, X: got 'float64 of shape (30, 0)'"),
    ({"X": np.eye(30, 1001), "y": Y}, "data, X: got '1,001 columns'; allowed: at most 1,000"),
    ({"X": X, "y": Y, "groups": Y[:-1]}, "groups (29,)'; allowed: equal numbers"),
    ({"X": X, "y": Y, "groups": Y // 10}, "data, groups: got '3 groups'; allowed: 5 groups"),
    ({"X": X, "y": Y, "groups": np.where(Y < 3, np.nan, Y)}, "data, groups: got 'a missing group'"),
    ({"X": X, "y": Y, "groups": (Y - 25).clip(0)}, "nearly all rows in one group"),
]
LINES = [
    ("", "advise: got 'none'; allowed: one of --data FILE, --n N, --context"),
    ("--n 9 --context 4k:8k", "got '--n and --context'"),
    ("--data none.csv --target y", "--data none.csv: file not found"),
    ("--data . --target y", "allowed: a .csv or .npz file"),
    ("--data bad.npz", "allowed: arrays of numbers"),
    ("--data good.csv", "--target: required; choose a column: a, b, y"),
    ("--data good.csv --target a --target y", "--target: got '2 values'; allowed: one value"),
    ("--n 4096 --n 4096 --budget 64 --noise 1", "--n: got '2 values'; allowed: one value"),
    ("--data good.csv --target y --groups y", "allowed: a column other than --target"),
    ("--data good.npz --target y", "--target: got 'y'; allowed: no option"),
    ("--data good.csv --target y --budget 8", "--budget: got 8; allowed: with --data"),
    ("--n 4096 --budget 64", "--n: needs --noise"),
    ("--n 4096 --budget 1 --noise 1", "--budget: got 1; allowed: 2 to 4096"),
    ("--n 4096 --budget 64 --noise -1", "--noise: got -1.0; allowed: finite and >= 0"),
    ("--n 4096 --budget 64 --noise nan", "--noise: got nan; allowed: finite and >= 0"),
    ("--n 4096 --budget 64 --noise 1 --smoothness 0", "--smoothness: got 0.0; allowed: 0.1 to"),
    ("--n 4096 --budget 64 --noise 1 --rule gausian", "(did you mean gaussian?)"),
    ("--n 20 --budget 64 --noise 1", "--n: got 20; allowed: more keys"),
    ("--context 128k:4k", "--context: got '128k:4k'; allowed: SHORT:LONG"),
    ("--context 4k", "--context: got '4k'; allowed: SHORT:LONG"),
    ("--context 4k:8k --rule 1-entmax", "(did you mean softmax?)"),
    ("--context 4k:8k --rule top-k", "--rule: got 'top-k'; allowed: softmax,"),
    ("--context 4k:8k --noise 1", "--noise: got 1.0; allowed: with --context: --rule"),
]


def refused(capsys, recwarn, words, line):
    assert run("advise", *line.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), list(recwarn)) == ("", 1, [])
    assert words in err
    assert err[:-1].isprintable()


@pytest.mark.parametrize(("content", "words"), [*CSV, *NPZ], ids=lambda v: ascii(v)[-25:])
def test_files(tmp_path, monkeypatch, capsys, recwarn, content, words):
    monkeypatch.chdir(tmp_path)
    if isinstance(content, dict):
        np.savez("bad.npz", **content)
        refused(capsys, recwarn, words, "--data bad.npz")
        return
    Path("bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(capsys, recwarn, words, "--data bad.csv --target y")


@pytest.mark.parametrize(("line", "words"), LINES, ids=lambda v: v[:30])
def test_lines(tmp_path, monkeypatch, capsys, recwarn, line, words):
    monkeypatch.chdir(tmp_path)
    Path("good.csv").write_text(table(*ROWS))
    Path("bad.npz").write_bytes(b"PK\x03\x04 cut short")
    np.savez("good.npz", X=X, y=Y)
    refused(capsys, recwarn, words, line)


@pytest.mark.parametrize(
    "line", ["--data good.csv --target y", "--n 4096 --budget 8 --noise 1", "--context 4k:8k"]
)
def test_json_and_text_say_the_same(tmp_path, monkeypatch, capsys, line):
    monkeypatch.chdir(tmp_path)
    Path("good.csv").write_text("\ufeff" + table(*ROWS, header='"a","b","y"'))
    assert run("advise", *line.split(), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert run("advise", *line.split()) == 0
    text = capsys.readouterr().out
    for one in told["rests_on"]:
        assert "Rests on: {question} [{experiment}: {id}] {answer}.".format(**one) in text
    assert all(sentence in text for sentence in told["said"])
