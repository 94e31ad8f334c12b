"""The heads as an estimator of scikit-learn, and the lines of Python that the command prints."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sims.advise import HeadsRegressor, advise_data, read_data
from sims.base.errors import InputError
from tests.cli.small import run

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)) * [1, 20, 0.1] + 5
Y = np.sin(X[:, 0]) + X[:, 1] / 20 + 0.2 * RNG.normal(size=120)
SPLIT = HeadsRegressor("softmax", heads=3, width=1)


@parametrize_with_checks([HeadsRegressor(), SPLIT, HeadsRegressor("sparsemax", temperature=4.0)])
def test_scikit_learn_accepts_the_heads(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "gausian"}, "did you mean gaussian"),
        ({"width": 4}, "width: got 4; allowed: 1 to 3"),
        ({"heads": 0}, "heads: got 0"),
        ({"temperature": -1.0}, "temperature: got -1.0"),
    ],
)
def test_parameters_outside_their_range_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        HeadsRegressor(**options).fit(X, Y)


def test_the_bandwidth_is_that_of_least_left_out_error():
    chosen = HeadsRegressor(heads=2, width=2).fit(X, Y)
    errors = {}
    for factor in (0.3, 1.0, 3.0):
        options = {"temperature": factor * chosen.temperature_, "heads": 2, "width": 2}
        left_out = []
        for row in range(len(X)):
            fitted = HeadsRegressor(**options).fit(np.delete(X, row, 0), np.delete(Y, row))
            left_out.append(fitted.predict(X[[row]])[0] - Y[row])
        errors[factor] = np.mean(np.square(left_out))
    assert min(errors, key=errors.get) == 1.0


def test_the_printed_lines_make_the_advised_heads(tmp_path, monkeypatch, capsys):
    """From the file as it is written: a column of numbers, trailing commas, raw units."""
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(X, columns=list("abc")).assign(y=Y).reset_index().to_csv()
    Path("a.csv").write_text(table.replace("\n", ",\n"))
    assert run("advise", "--data", "a.csv", "--target", "y") == 0
    lines = capsys.readouterr().out.split("heads.predict(rows):\n")[1].splitlines()
    names = {}
    exec("\n".join(lines[:3]), names)
    advice = advise_data(read_data("a.csv", "y"))
    np.testing.assert_array_equal(names["heads"].frames_, advice.frames["best"])
    assert list(names["data"].inputs) == ["a", "b", "c"]
    np.testing.assert_array_equal(names["data"].targets, Y)
    errors = names["heads"].predict(names["data"].inputs) - Y
    assert np.mean(errors**2) < 0.5 * Y.var()
