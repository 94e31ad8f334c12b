"""Plots draw what they are given: places, errors, series."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib import rc_context
from matplotlib.colors import to_hex, to_rgb

from sims import figures
from sims.figures.groups import binned, outcome_bars
from sims.judgement.conventions import word
from tests.by_hand import refused

TWO = pd.DataFrame(
    {
        "n": [10, 100, 10, 100],
        "kernel": ["b", "b", "a", "a"],
        "mse": [1.1, 0.99, 2.0, -1.0],
        "mse_mcse": [0.01, 0.02, 0.03, 0.04],
        "mse_theory": [1.0, 1.0, 2.0, -1.25],
    }
)
CURVE = pd.DataFrame({"H": [4, 1, 2], "kept": [0.4, 1.0, 0.6], "kept_mcse": [0.01, 0.02, 0.03]})
CURVE["kept_theory"] = CURVE["kept"]


@pytest.fixture
def ax():
    return figures.panels()[1][0, 0]


def bars(ax):
    """Centres and half lengths of all error bars, and whether their markers are filled."""
    out = []
    for container in ax.containers:
        line, _, (bar,) = container.lines
        halves = [np.ptp(np.asarray(segment), axis=0).max() / 2 for segment in bar.get_segments()]
        filled = to_hex(line.get_markerfacecolor()) != "#ffffff"
        out += [(x, y, h, filled) for (x, y), h in zip(line.get_xydata(), halves, strict=True)]
    return sorted(out)


def luminance(color):
    """Relative luminance of WCAG 2, and the 0.05 of its contrasts."""
    value = np.array(to_rgb(color))
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722] + 0.05


def spans(ax):
    """Ends of all filled areas and of horizontal lines: left, bottom, right, top."""
    boxes = [path.get_extents() for c in ax.collections for path in c.get_paths()]
    return {tuple(np.round(box.extents, 9)) for box in boxes}


@pytest.mark.parametrize(
    "settings",
    [{"text.usetex": True, "figure.dpi": 3}, {"axes.grid": True, "savefig.bbox": "tight"}],
)
def test_settings_of_the_user_change_no_figure(tmp_path, settings):
    """What stands in a matplotlibrc, the working folder's among them, is not ours."""
    drawn = []
    for own in ({}, settings):
        with rc_context(own):
            drawing, axes = figures.panels(title="Of $x$")
            axes[0, 0].plot([1, 2], [2, 3])
            figures.save(drawing, tmp_path / "a.png", "test", formats=["png"])
        drawn.append((tmp_path / "a.png").read_bytes())
    assert drawn[0] == drawn[1]


def test_curve_draws_lines_and_points(ax):
    figures.curve(ax, CURVE, "H", "kept", log="xy")
    points = [bar[:3] for bar in bars(ax)]
    np.testing.assert_allclose(points, [(1, 1, 0.04), (2, 0.6, 0.06), (4, 0.4, 0.02)])
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [(1, 1), (2, 0.6), (4, 0.4)])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.figure.get_supxlabel() == "bars: ± 2 MCSE (Monte Carlo standard errors)"


def test_scatter_has_a_panel_a_parameter():
    effects = [0.1, -0.1, 0.2], [0.01, 0.02, 0.03]
    drawing = figures.scatter(CURVE[["H", "kept", "kept_mcse"]], *map(np.array, effects), "Message")
    shown = [ax for ax in drawing.axes if ax.get_visible()]
    assert [ax.get_xlabel() for ax in shown] == ["H", "kept", "kept_mcse"]
    expected = [(1, -0.1, 0.04), (2, 0.2, 0.06), (4, 0.1, 0.02)]
    np.testing.assert_allclose([bar[:3] for bar in bars(shown[0])], expected)
    assert drawing.get_suptitle() == "Message"


def test_curve_over_words_sets_series_side_by_side(ax):
    frame = pd.DataFrame(
        {
            "stream": ["q", "p", "p"],
            "method": ["one", "one", "other"],
            "share": [3.0, 1.0, 2.0],
            "share_mcse": [0.1, 0.2, 0.3],
            "share_theory": [3.5, 1.5, 2.5],
        }
    )
    figures.curve(ax, frame, "stream", "share", hue="method")
    points = [bar[:3] for bar in bars(ax)]
    np.testing.assert_allclose(points, [(-0.2, 3.0, 0.2), (0.8, 1.0, 0.4), (1.2, 2.0, 0.6)])
    assert {(-0.36, 3.5, -0.04, 3.5), (1.04, 2.5, 1.36, 2.5)} <= spans(ax)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["q", "p"]


def test_a_level_keeps_its_colour_where_others_are_missing(ax):
    frame = TWO.astype({"kernel": pd.CategoricalDtype(["a", "b"])})
    figures.curve(ax, frame[frame["kernel"] == "b"], "n", "mse", hue="kernel")
    line = ax.containers[0].lines[0]
    assert (line.get_color(), line.get_marker()) == (figures.PALETTE[1], figures.MARKERS[1])


@pytest.mark.parametrize(
    ("frame", "hue", "allowed"),
    [
        (TWO, "kind", "a column: n, kernel"),
        (TWO.loc[[0] * 9].assign(k=range(9)), "k", "most 8"),
    ],
)
def test_what_cannot_be_drawn_is_refused(ax, frame, hue, allowed):
    with refused(allowed):
        figures.curve(ax, frame, "n", "mse", hue=hue)


def test_panels_have_letters_and_plain_ticks_and_legends_below(ax):
    ax.plot([300, 3e4], [1, 1], label="heads")
    figures.describe(ax, "$n$", "error", "noise", log="x")
    figures.letters([ax])
    assert (ax.get_title(loc="left"), ax.get_title()) == (r"$\mathbf{a}$  noise", "")
    ax.figure.draw_without_rendering()
    assert {"1,000", "3,000", "30,000"} <= {t.get_text() for t in ax.get_xticklabels()}
    assert ax.get_legend().get_window_extent().y1 < ax.get_window_extent().y0


def test_colours_have_contrast():
    """Of WCAG 2: (lighter + 0.05)/(darker + 0.05) of relative luminances."""
    for background in ("white", figures.BAND):
        paper = luminance(background)
        assert paper / max(map(luminance, (*figures.PALETTE, figures.GREY))) >= 3


def test_a_mosaic_has_panels_of_several_sizes():
    drawing, axes = figures.mosaic(("ab", "cc"), height=3.0, heights=(2, 1))
    drawing.draw_without_rendering()
    a, b, c = (axes[name].get_window_extent() for name in "abc")
    assert c.width > a.width + b.width
    assert a.height > 1.5 * c.height
    assert c.y1 < a.y0


def test_files_are_the_same_bytes_for_the_same_data(tmp_path):
    made = []
    for _ in range(2):
        drawing, axes = figures.panels()
        figures.curve(axes[0, 0], CURVE, "H", "kept")
        figures.save(drawing, tmp_path / "own.pdf", "own at smoke", "0a1b")
        made.append({path.name: path.read_bytes() for path in tmp_path.iterdir()})
    assert set(made[0]) == {"own.pdf", "own.png", "own.svg"}
    assert made[0] == made[1]
    assert all(b"0a1b" in content for content in made[0].values())


def test_starting_costs_neither_jax_nor_matplotlib():
    heavy = "{'matplotlib', 'seaborn', 'pandas', 'jax'}"
    code = f"import sys; from sims import figures; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_words_stand_where_answers_get_them(ax):
    figures.words(ax)
    (top,) = ax.child_axes
    for place, text in zip(top.get_xticks() / 100, top.get_xticklabels(), strict=True):
        assert word(place, (place, place), 100) == text.get_text().replace("\n", " ")
    for line in ax.lines:
        near = line.get_xdata()[0] / 100 + np.array([-1e-6, 1e-6])
        assert len({word(x, (x, x), 100) for x in near}) == 2


def test_outcomes_fill_a_bar_and_bins_leave_out_what_has_no_value(ax):
    """Shares of two questions end to end; medians of two groups of four, by hand."""
    shares = {"holds": 0.5, "level": 0.2, "undecided": 0.1, "fails": 0.2}
    outcome_bars(ax, {"first": shares, "second": {**shares, "holds": 0.7, "level": 0.0}})
    edges = [[(b.get_x(), b.get_width()) for b in bars.patches] for bars in ax.containers]
    assert np.allclose(np.transpose(edges)[1].sum(1), 100)
    assert np.allclose([row[1][0] for row in edges], [0, 70, 70, 80])
    x, values = np.arange(9.0), np.array([1, 2, 3, 4, np.nan, 5, 6, 7, 8.0])
    binned(ax, x[::-1], values[::-1], "C0")
    assert np.allclose(ax.lines[-1].get_xydata(), [[1.5, 2.5], [6.5, 6.5]])
    edge = {tuple(point) for point in ax.collections[-1].get_paths()[0].vertices}
    assert edge == {(1.5, 1.75), (1.5, 3.25), (6.5, 5.75), (6.5, 7.25)}


def test_an_overview_has_numbers_for_labels_that_end_in_one_and_terms_that_differ():
    """Three sets of heads by their index, of which the variance is the same everywhere."""
    labels = [
        "set 0, diversity index 0.30",
        "set 1, diversity index 0.02",
        "set 2, diversity index 0.4",
    ]
    terms = {"mse": [3.0, 1.0, 2.0], "squared_bias": [2.0, 0.0, 1.0]}
    columns = {"variance": [1.0] * 3, "covariance": [1.0] * 3} | terms
    data = xr.Dataset(
        {name: ("point", values, {"long_name": name}) for name, values in columns.items()}
    )
    for name in columns:
        data[f"{name}_mcse"] = "point", [0.1] * 3
        data[f"{name}_theory"] = "point", [np.nan] * 3
    data = data.assign_coords(frames=("point", labels, {"long_name": "frames"}))
    axes = figures.overview(data).axes
    assert [ax.get_ylabel() for ax in axes] == list(terms)
    assert {ax.get_xlabel() for ax in axes} == {"diversity index"}
    assert [bar[:2] for bar in bars(axes[0])] == [(0.02, 1.0), (0.3, 3.0), (0.4, 2.0)]


def test_colours_have_contrast_in_a_dark_room():
    """After the site's filter: each channel inverted to 92 %, hues turned back by 180 degrees."""
    css = (Path(__file__).parents[2] / "docs/static/site.css").read_text("utf-8")
    assert css.count("filter: invert(0.92) hue-rotate(180deg)") == 2
    grey = np.array([0.213, 0.715, 0.072])
    turn = 2 * np.ones((3, 1)) * grey - np.eye(3)

    def shown(colour):
        return np.clip(turn @ (0.92 - 0.84 * np.array(to_rgb(colour))), 0, 1)

    paper = luminance(shown("white"))
    assert min(luminance(shown(ink)) for ink in (*figures.PALETTE, figures.GREY)) / paper >= 3
