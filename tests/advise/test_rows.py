"""Rows and columns that are no evidence, label noise, exact targets, many columns, and CSV."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sims.advise import advise_data, prepared, read_data
from sims.advise.parts import noise_interval
from sims.base.errors import InputError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), RNG.normal(size=60)
BITS, LEVELS, LABELS = (RNG.integers(*range_, 60) for range_ in ((0, 4), (20, 60), (0, 2)))
TWICE, SHUFFLED = np.arange(120) % 60, RNG.permutation(180) % 60
TABLE = pd.DataFrame(X, columns=list("abc")).assign(y=Y)
COPIES = [
    (X, Y > 0, TWICE, 60),
    (X.round(1), Y.round(1), np.r_[SHUFFLED, 3, 7], 60),
    (X[:30].repeat(2, 0), Y, TWICE, 60),  # real repeated measurements
    (BITS, BITS % 3 % 2, TWICE, 120),  # a truth table
    (LEVELS, LABELS, SHUFFLED, 60),
    (LEVELS, LABELS, np.arange(60), 60),  # chance
]


@pytest.mark.parametrize(("x", "y", "rows", "kept"), COPIES)
def test_copies_are_left_out_and_counts_stay(x, y, rows, kept):
    data = prepared(x.reshape(60, -1)[rows], 1.0 * y[rows])
    assert len(data.features) == kept
    assert f"of {len(rows)} rows repeat others" in data.notes[-1]


def test_advice_from_copies_is_that_from_rows(tmp_path):
    """However their numbers are written."""
    table, path = abs(TABLE.round(2)), tmp_path / "a.csv"
    table.to_csv(path, index=False)
    once = advise_data(read_data(path, "y"))
    table.to_csv(path, index=False, mode="a", header=False, float_format="%.4f")
    twice = advise_data(read_data(path, "y"))
    assert (twice.rows, twice.parts) == (once.rows, once.parts)


@pytest.mark.parametrize(
    ("name", "values", "note"),
    [
        ("", range(60), "Left out the column without a name"),
        ("Unnamed: 0.1", LEVELS, "Left out"),
        ("PassengerId", 7 * TWICE[9:69], "Left out"),
        ("nr", 9 * np.argsort(np.argsort(Y)), "Left out the column nr, which numbers the rows by"),
        ("rank", -Y.round(4), "The column rank equals an output"),
        ("log", np.exp(Y), "The column log equals an output"),
        ("step", 7 * TWICE[:60], "The column step counts the rows"),
        ("index", Y[::-1], ""),
        (
            "far",
            np.where(TWICE[:60] == 16, 1e6, X[:, 0]),
            "The column far holds 1e+06 in row 17, far",
        ),
        (
            "code",
            np.where(TWICE[:60] < 2, -999, Y[::-1]),
            "The column code holds -999 in row 1, -999",
        ),
        ("rare", 1.0 * (TWICE[:60] == 3), ""),
        ("year", TWICE[9:69], "The column year counts the rows"),
    ],
)
def test_numbers_of_rows_are_no_feature(tmp_path, name, values, note):
    path = tmp_path / "a.csv"
    TABLE.assign(k=values).rename(columns={"k": name}).to_csv(path, index=False)
    data = read_data(path, "y")
    assert data.features.shape[1] == 4 - ("Left" in note)
    assert "".join(data.notes).startswith(note)


@pytest.mark.parametrize(("repeats", "columns"), [(1, 1), (2, 8)])
def test_the_interval_of_noise_covers(repeats, columns):
    """19 of 20, from near rows of one dimension, or equal ones of eight."""
    covered = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(150 // repeats, columns)).repeat(repeats, 0)
        y = np.sin(5 * x[:, 0]) + rng.normal(size=150)
        low, high = noise_interval(prepared(x, y), [])
        covered.append(low < 1 / y.var() < high)
    assert 0.9 < np.mean(covered) < 0.97


@pytest.mark.parametrize("outputs", [[0, 1, 1, 0], [3, 5, 8, 1]])
def test_exact_targets_leave_no_error(outputs):
    table = np.stack([BITS % 2, BITS // 2], 1)
    part = advise_data(prepared(table, np.array(outputs)[BITS])).parts["best"]
    assert (part.error, part.noise, part.bias) == (0, (0, 0), (0, 0))
    assert np.isnan(part.kept)


def test_many_columns_are_searched_coarsely():
    advice = advise_data(prepared(RNG.normal(size=(120, 65)), SHUFFLED[:120]))
    assert advice.notes[0].startswith("Many features")
    assert any("one length" in row.name for row in advice.rows)


CELLS = st.sampled_from(["1", " -2.5e3", '"4"', "", "NA", "x", "1,5", '"', "True", "inf", "é"])


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.lists(st.lists(CELLS, min_size=2, max_size=4), max_size=3), st.sampled_from(",,;"))
def test_a_csv_is_what_pandas_reads_or_refused_in_one_line(tmp_path_factory, cells, mark):
    rows = [["a", "b", "y"], *cells, *TABLE[["a", "b", "y"]].astype(str).to_numpy()]
    path, text = tmp_path_factory.getbasetemp() / "a.csv", "\n".join(map(mark.join, rows))
    path.write_text("\ufeff" + text, encoding="utf-8")
    try:
        data = read_data(path, "y")
    except InputError:
        return
    read = pd.read_csv(io.StringIO(text)).to_numpy(float)
    np.testing.assert_array_equal(data.features, prepared(read[:, :2], read[:, 2]).features)
