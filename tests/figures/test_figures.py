"""Plots draw what they are given: places, errors, margins, verdicts."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.colors import to_hex, to_rgb

from sims import figures
from sims.errors import InputError
from sims.figures.marks import margin_text
from sims.figures.names import spread
from sims.figures.theme import STRONG
from tests.figures.helpers import (
    CURVE,
    EFFECTS,
    GAPS,
    SUPPORTED,
    axes_of,
    bars,
    note_of,
    words,
)


def test_forest_draws_effects_their_errors_and_the_worst():
    (ax,) = axes_of()
    figures.forest(ax, EFFECTS, margin=0.05, verdict={"second": "refuted"})
    drawn = sorted((y, x, h, filled) for x, y, h, filled in bars(ax))
    expected = [
        (0, 0.01, 0.002, True),
        (1, -0.04, 0.006, True),
        (1, 0.02, 0.004, False),
        (1, 0.03, 0.008, False),
    ]
    np.testing.assert_allclose(drawn, expected)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["first", "second"]
    bottom, top = ax.get_ylim()
    assert bottom > top, "the first line is on top"
    assert "✗  refuted" in words(ax)
    spans = [np.ravel(p.vertices) for c in ax.collections for p in c.get_paths()]
    assert any(np.array_equal(np.round(s, 9), [-0.045, 1, -0.035, 1]) for s in spans), "the bound"
    assert "bars: ± 2 MCSE (Monte Carlo standard errors)" in note_of(ax)
    assert "margin ± 5 %" in words(ax), "over the column of verdicts"


def test_forest_of_groups_has_headings_and_a_worst_effect_in_each():
    (ax,) = axes_of()
    rows = [("p", "one", 0.01), ("p", "two", 0.03), ("q", "one", -0.02), ("q", "two", 0.0)]
    frame = pd.DataFrame(rows, columns=["group", "label", "value"]).assign(error=0.001)
    figures.forest(
        ax, frame, margin={("p", "one"): 0.05, ("q", "two"): (0.0, np.inf)},
        verdict={("p", "two"): "refuted", "q": SUPPORTED},
    )  # fmt: skip
    names = {t.get_position()[1]: t.get_text() for t in ax.get_yticklabels()}
    assert names == {1: "one", 2: "two", 4: "one", 5: "two"}
    assert {t.xy[1]: t.get_text() for t in ax.texts if t.get_fontweight() == "bold"} == {
        0: "p", 3: "q"
    }  # fmt: skip
    assert [(x, y) for x, y, _, filled in bars(ax) if filled] == [(0.03, 2), (-0.02, 4)]
    said = {t.xy[1]: t.get_text() for t in ax.texts if t.xy[0] == 1 and t.get_text()}
    assert said == {2: "✗  refuted", 3: "✓  supported"}
    strips = [c.get_paths()[0].get_extents() for c in ax.collections if hasattr(c, "get_paths")]
    heights = {round((s.y0 + s.y1) / 2, 9) for s in strips}
    assert {1.0, 5.0} <= heights
    assert {"grey: margins", "filled: nearest to its margin"} < set(note_of(ax).split("  ·  "))


def test_forest_says_less_in_one_column():
    with figures.preset("one-column"):
        (ax,) = axes_of()
    figures.forest(ax, EFFECTS, margin=0.05, verdict={"second": "refuted"}, numbers=True)
    assert [text.strip() for text in words(ax)] == ["✗", "margin ± 5 %"]


def test_worst_is_what_has_least_room_not_what_is_largest():
    ax, other = axes_of(2)
    steps = EFFECTS.assign(label=list("abcd"))
    figures.forest(ax, steps, margin=(0.0, np.inf))
    assert [(x, y) for x, y, _, filled in bars(ax) if filled] == [(-0.04, 2)]
    figures.forest(other, steps, margin=(-0.2, 0.031))
    assert [(x, y) for x, y, _, filled in bars(other) if filled] == [(0.03, 3)]


def edges(ax, upright):
    """Places of the dashed edges of bands."""
    lines = [c for c in ax.collections if type(c).__name__ == "LineCollection"]
    ends = [np.asarray(s) for c in lines for s in c.get_segments() if c.get_linestyle()[0][1]]
    return sorted({round(float(s[0, 0 if upright else 1]), 9) for s in ends})


def test_margin_band_stands_where_the_margin_is_and_says_so():
    ax, other, third = axes_of(3)
    figures.forest(ax, EFFECTS, margin=0.05)
    assert edges(ax, upright=True) == [-0.05, 0.05]
    left, right = ax.get_xlim()
    assert left < -0.05 < 0.05 < right
    assert ax.get_title(loc="right") == "margin ± 5 %"
    figures.forest(other, EFFECTS, margin={"first": 0.05, "second": (-0.01, 0.02)})
    strips = [c.get_paths()[0].get_extents() for c in other.collections if hasattr(c, "get_paths")]
    spans = {(round(s.x0, 9), round(s.x1, 9), round((s.y0 + s.y1) / 2, 9)) for s in strips}
    assert {(-0.05, 0.05, 0.0), (-0.01, 0.02, 1.0)} <= spans
    figures.gap(third, GAPS, "n", margin=0.05, over=(50, np.inf))
    (fill,) = [c for c in third.collections if type(c).__name__ == "FillBetweenPolyCollection"]
    box = fill.get_paths()[0].get_extents()
    np.testing.assert_allclose([box.x0, box.y0, box.y1], [50, -0.05, 0.05])
    assert "margin ± 5 %" in words(third)


@pytest.mark.parametrize(
    ("margin", "text"),
    [
        (0.05, "margin ± 5 %"),
        ((-0.0476, 0.0526), "margin −4.8 to 5.3 %"),
        ((0.0, np.inf), "margin: above 0 %"),
        ((-np.inf, 0.1), "margin: below 10 %"),
    ],
)
def test_margins_in_words(margin, text):
    assert margin_text(margin) == text


def test_a_margin_without_room_is_refused():
    with pytest.raises(InputError, match="margin"):
        figures.band(axes_of()[0], 0.0)


def test_gaps_are_simulation_over_theory_less_one():
    (ax,) = axes_of()
    lines = pd.DataFrame({"n": [100, 10], "kernel": "a", "exact": [3.0, 1.5], "theory": [2.0, 2.0]})
    figures.gap(ax, GAPS, "n", hue="kernel", lines=lines, margin=0.05, verdict={"b": "refuted"})
    drawn = sorted((x, y, h) for x, y, h, _ in bars(ax))
    expected = [(10, 0, 0.03), (10, 0.1, 0.02), (100, -0.01, 0.04), (100, -0.2, 0.064)]
    np.testing.assert_allclose(drawn, sorted(expected))
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [(10, -0.25), (100, 0.5)])
    assert ax.get_ylabel() == "simulation / theory − 1 (%)"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["b ✗", "a"]
    assert note_of(ax) == "✗ refuted  ·  bars: ± 2 MCSE (Monte Carlo standard errors)"
    share, error = figures.relative_gap(1.5, 0.1, 1.0, scale=5.0)
    assert (share, error) == (0.1, 0.02)


def test_curve_draws_lines_points_and_the_margin_around_theory():
    (ax,) = axes_of()
    figures.curve(ax, CURVE, CURVE, "H", "kept", margin=0.1, verdict=SUPPORTED, log="xy")
    drawn = sorted((x, y, h) for x, y, h, _ in bars(ax))
    np.testing.assert_allclose(drawn, [(1, 1, 0.04), (2, 0.6, 0.06), (4, 0.4, 0.02)])
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [(1, 1), (2, 0.6), (4, 0.4)])
    shaded = ax.collections[0].get_paths()[0].vertices
    assert {(1.0, 1.1), (1.0, 0.9), (4.0, 0.44)} <= {tuple(np.round(v, 9)) for v in shaded}
    assert ax.get_title(loc="right") == "✓ supported\nmargin ± 10 %"
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_curve_over_words_sets_series_side_by_side():
    (ax,) = axes_of()
    frame = pd.DataFrame(
        {"stream": ["q", "p", "p"], "road": ["one", "one", "other"], "simulation": [3.0, 1.0, 2.0],
         "mcse": [0.1, 0.2, 0.3], "theory": [3.5, 1.5, 2.5]}
    )  # fmt: skip
    figures.curve(ax, frame, None, "stream", "share", hue="road", verdict={"p": "refuted"})
    drawn = sorted((round(x, 9), y, round(h, 9)) for x, y, h, _ in bars(ax))
    assert drawn == [(-0.2, 3.0, 0.2), (0.8, 1.0, 0.4), (1.2, 2.0, 0.6)]
    dashes = [
        np.mean(s, axis=0).round(9).tolist() for c in ax.collections for s in c.get_segments()
    ]
    assert all(place in dashes for place in ([-0.2, 3.5], [0.8, 1.5], [1.2, 2.5]))
    assert [t.get_text() for t in ax.get_xticklabels()] == ["q", "p\n✗"]


def test_emphasis_is_the_one_colour():
    (ax,) = axes_of()
    figures.gap(ax, GAPS, "n", hue="kernel", emphasis="a")
    drawn = {c.lines[0].get_marker(): c.lines[0] for c in ax.containers}
    assert to_hex(drawn["s"].get_color()) == STRONG
    assert to_hex(drawn["s"].get_markerfacecolor()) == STRONG
    assert len(set(to_rgb(drawn["o"].get_color()))) == 1, "the others are grey"


def test_tidy_frames_have_a_row_a_place():
    values = np.random.default_rng(0).normal(size=(3, 4, 2))
    batches = xr.DataArray(values, dims=("size", "batch", "rule"), coords={"size": [1, 2, 4]})
    frame = figures.tidy(batches, kernel="a")
    assert list(frame) == ["size", "rule", "simulation", "mcse", "kernel"]
    row = frame[(frame["size"] == 2) & (frame["rule"] == 1)].iloc[0]
    one = values[1, :, 1]
    assert (row["simulation"], row["mcse"]) == pytest.approx((one.mean(), one.std(ddof=1) / 2))


def test_names_at_the_ends_of_lines_do_not_lie_on_one_another():
    (ax,) = axes_of()
    both = pd.concat(
        [CURVE.assign(system=s, kept=CURVE["kept"] + d) for s, d in (("p", 0), ("q", 1e-3))]
    )
    figures.curve(
        ax, both, both, "H", "kept", hue="system", labels="ends", verdict={"q": "refuted"}
    )
    named = {text.get_text(): text for text in ax.texts}
    assert set(named) == {"p", "q ✗"}
    assert ax.get_legend() is None
    ax.figure.draw_without_rendering()
    height = {
        k: ax.transData.transform(t.xy)[1] / ax.figure.dpi * 72 + t.xyann[1]
        for k, t in named.items()
    }
    assert height["q ✗"] - height["p"] > 7


def test_spread_moves_as_little_as_can_be():
    np.testing.assert_allclose(spread(np.array([0.0, 10.0, 10.5]), 1.0), [0, 9.75, 10.75])
    np.testing.assert_allclose(spread(np.array([0.0, 5.0]), 1.0), [0, 5])
    places = spread(np.sort(np.random.default_rng(0).normal(size=30)), 0.2)
    assert np.diff(places).min() > 0.2 - 1e-12


def test_verdicts_have_a_word_and_a_sign():
    ax, other = axes_of(2)
    figures.badge(ax, SUPPORTED)
    figures.badge(other, "refuted")
    assert ax.get_title(loc="right") == "✓ supported"
    assert other.get_title(loc="right") == "✗ refuted"
    figures.badge(ax, dataclasses.replace(SUPPORTED, kind="program"))
    assert ax.get_title(loc="right") == "✓ by algebra"
    assert figures.signed("ants", {"ants": SUPPORTED, "trees": "refuted"}) == "ants ✓"
    with pytest.raises(InputError, match="supported, refuted, inconclusive"):
        figures.badge(ax, "true")


def test_a_level_keeps_its_colour_where_others_are_missing():
    kinds = pd.CategoricalDtype(["a", "b"])
    frame = GAPS.astype({"kernel": kinds})
    (one,) = figures.series(frame[frame["kernel"] == "b"], "kernel")
    assert (one.color, one.marker) == (figures.PALETTE[1], figures.MARKERS[1])
    many = pd.DataFrame({"kernel": range(9)})
    with pytest.raises(InputError, match="at most 8"):
        list(figures.series(many, "kernel"))
    with pytest.raises(InputError, match="a column: kernel"):
        list(figures.series(many, "kind"))


def test_every_simulated_point_has_its_error_bar():
    ax, other = axes_of(2)
    figures.simulated(ax, [1, 2, 3], [1, 2, 3], [0.1, 1e-9, 0.2])
    (container,) = ax.containers
    _, caps, (lines,) = container.lines
    assert len(caps) == 2
    np.testing.assert_allclose(lines.get_segments()[0][:, 1], [1 - 0.2, 1 + 0.2])
    other.set_title("noise")
    figures.letters([ax, other])
    assert ax.get_title(loc="left") == "a"
    assert (other.get_title(loc="left"), other.get_title()) == (r"$\mathbf{b}$  noise", "")


def test_ticks_and_numbers_are_plain():
    (ax,) = axes_of()
    figures.log_axes(ax, x=True)
    figures.ticks(ax.xaxis, (0.5, 1000, 20000))
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.5", "1,000", "20,000"]
    assert [figures.number(v, percent=True) for v in (-0.05, 0.07, 1)] == ["−5", "7", "100"]
