"""What the captions of `diversity` and `allocation` quote, by hand, and the price of diversity."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from sims.effects import Effect
from sims.study.experiment import load_experiment


def test_diversity_quotes_the_worst_rises_to_four_standard_errors():
    """In per cent, a row an index and a column a regime; a regime that has no search has none."""
    rng = np.random.default_rng(4)
    rises = {"first": rng.normal(0.03, 0.004, (2, 16)), "second": rng.normal(0.2, 0.01, (1, 16))}
    predictions = {
        name: xr.Dataset(
            {
                "worst_index": ("searched", ["top, noise", "mean, total"][: len(own)]),
                "worst_rise": (("searched", "set"), own),
            }
        )
        for name, own in rises.items()
    }
    predictions["listed"] = xr.Dataset({"mse": 1.0})
    figure = load_experiment("diversity").module("figure")
    found = figure.worst(SimpleNamespace(predictions=predictions))

    def cell(values):
        mean = sum(values) / 16
        standard = (sum((v - mean) ** 2 for v in values) / 15 / 16) ** 0.5
        return f"{100 * mean:.2f} ± {4 * 100 * standard:.2f}"

    first, second = rises["first"], rises["second"]
    assert found["regimes"] == ["first", "second"]
    assert found["rows"] == [
        ("mean, total", [cell(first[1]), ""]),
        ("top, noise", [cell(first[0]), cell(second[0])]),
    ]


def test_allocation_counts_cells_of_the_map_that_are_wholly_within_or_beyond(monkeypatch):
    """Of deviations with a bound each: those that may lie on either side of 2 % are neither."""
    figure = load_experiment("allocation").module("figure")
    words = list(figure.WORDS)
    cells = [
        Effect("", value, bound=bound)
        for value, bound in (
            (0.01, 0.005), (0.02, 0.0), (0.019, 0.002),
            (0.022, 0.003), (0.03, 0.015), (0.03, 0.005), (0.5, 0.1),
        )
    ]  # fmt: skip
    curve = xr.DataArray(
        np.arange(12.0).reshape(3, 4, 1, 1),
        dims=("temperature", "n", "family", "dense_budget"),
        coords={"temperature": words, "family": ["smooth"], "dense_budget": [figure.BUDGET]},
    )
    splits = SimpleNamespace(theory=xr.Dataset({"optimum": curve}), cases=lambda: ["a", "b"])
    rows = {"a": (np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))}
    rows["b"] = rows["a"][0], rows["a"][1][::-1]
    growth = [Effect("", value, at={"budget": size}) for size, value in ((8, -1), (24, 2), (48, 3))]
    monkeypatch.setattr(figure, "Splits", lambda results, name: splits)
    monkeypatch.setattr(figure, "whole", lambda views, case, name: (None, *rows[case]))
    monkeypatch.setattr(figure, "optimal_set", lambda values, level: [True, False])
    monkeypatch.setattr(figure, "regimes", lambda theory, name: cells)
    monkeypatch.setattr(figure, "movements", lambda splits: {"growth, fixed": growth})
    found = figure.numbers(None)
    for place, name in enumerate(words):
        assert found[f"map_{name}"] == (2, 2, 7)
        assert found[name] == found["softmax"][name] == (4.0 * place, 4.0 * place + 3)
    assert (found["cases"], found["inside"]) == (2 * len(words), len(words))
    assert found["views_growth"] == found["softmax_views_growth"] == (-1, 3)
    assert found["blocks_growth"] == (2, 3)


def test_the_price_of_diversity_is_what_a_rise_falls_by():
    """Heads u, v, w with index 1 − x and error 1 + 0.2y + 0.5x, x = ⟨u, v⟩², y = ⟨u, w⟩².

    The worst pair has x = 0 and y from 0 to 1, a rise of 0.2. A step s in the index asks for
    x = s in the first, and leaves 1.2/(1 + 0.5s) − 1: a price of 0.5·1.2 at small steps. By a set
    whose index is larger by 0.03y, the second is more diverse by 0.03 than it has to be.
    """
    trial = load_experiment("diversity").module("trial")

    def parts(vectors):
        return ((vectors[..., 0, :] * vectors[..., k, :]).sum(-1) ** 2 for k in (1, 2))

    def error(vectors, column=0):
        x, y = parts(vectors)
        return 1 + 0.2 * y + 0.5 * x

    def index(vectors, key, column=0):
        x, y = parts(vectors)
        return 1 - x + 0.03 * column * y

    family = SimpleNamespace(heads=3, sets=1, error=error, index=index)
    found = trial.worst_pairs(
        family, [("mean", "geometric")], configurations=4000, levels=20, rounds=25, step=0.02,
        seed=1,
    )  # fmt: skip
    price = (0.2 - (1.2 / 1.01 - 1)) / 0.02
    assert found["worst_rise"].item() == pytest.approx(0.2 + 0.03 * price, abs=1e-3)
    assert 0.03 * price > 0.015
