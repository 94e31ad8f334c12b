"""Plots draw what they are given: places, errors, margins, verdicts."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from sims import figures
from sims.errors import InputError
from sims.figures.marks import INKS, margin_text
from sims.judgement import Verdict

GUIDE = Path(__file__).parents[2] / "docs" / "figures.md"
SUPPORTED = Verdict("c", "e", "r", "s", "supported", 0.0, (-0.01, 0.01), 0.05, 0.95, 9, "why")
EFFECTS = pd.DataFrame(
    {
        "label": ["first", "second", "second", "second"],
        "value": [0.01, 0.02, -0.04, 0.03],
        "error": [0.001, 0.002, 0.003, 0.004],
        "bound": [0.0, 0.0, 0.005, 0.0],
    }
)
GAPS = pd.DataFrame(
    {
        "n": [10, 100, 10, 100],
        "kernel": ["b", "b", "a", "a"],
        "simulation": [1.1, 0.99, 2.0, -1.0],
        "mcse": [0.01, 0.02, 0.03, 0.04],
        "theory": [1.0, 1.0, 2.0, -1.25],
    }
)
CURVE = pd.DataFrame({"H": [4, 1, 2], "kept": [0.4, 1.0, 0.6], "kept_mcse": [0.01, 0.02, 0.03]})


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


def words(ax):
    return {text.get_text() for text in ax.texts}


def spans(ax):
    """Ends of all filled areas and of horizontal lines: left, bottom, right, top."""
    boxes = [path.get_extents() for c in ax.collections for path in c.get_paths()]
    return {tuple(np.round(box.extents, 9)) for box in boxes}


def test_forest_draws_effects_their_errors_margins_and_the_worst(ax):
    figures.forest(ax, EFFECTS, margin=0.05, verdict={"second": "refuted"})
    expected = [
        (-0.04, 1, 0.006, True),
        (0.01, 0, 0.002, True),
        (0.02, 1, 0.004, False),
        (0.03, 1, 0.008, False),
    ]
    np.testing.assert_allclose(bars(ax), expected)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["first", "second"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first line is on top"
    assert "✗  refuted" in words(ax)
    assert (-0.045, 1, -0.035, 1) in spans(ax), "the bound"
    assert {(-0.05, -0.5, 0.05, 0.5), (-0.05, 0.5, 0.05, 1.5)} <= spans(ax)
    assert ax.get_title(loc="right") == "margin ± 5 %"
    remarks = ax.figure.get_supxlabel()
    assert remarks.startswith("✗ refuted  ·  bars: ± 2 MCSE (Monte Carlo standard errors)")


def test_forest_of_groups_has_headings_and_a_worst_effect_in_each(ax):
    rows = [("p", "one", 0.01), ("p", "two", 0.03), ("q", "one", -0.02), ("q", "two", 0.0)]
    frame = pd.DataFrame(rows, columns=["group", "label", "value"]).assign(error=0.001)
    margin = {("p", "one"): 0.05, ("q", "two"): (0.0, np.inf)}
    verdict = {("p", "two"): "refuted", "q": SUPPORTED}
    figures.forest(ax, frame, margin=margin, verdict=verdict, numbers=True)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["", "one", "two", "", "one", "two"]
    at = {(t.xy[0], t.xy[1]): t.get_text() for t in ax.texts}
    assert (at[0, 0], at[0, 3]) == ("p", "q")
    assert (at[1, 2], at[1, 3], at[1, 4]) == ("✗  3 ± 0.2 %", "✓  supported", "−2 ± 0.2 %")
    assert [(x, y) for x, y, _, filled in bars(ax) if filled] == [(-0.02, 4), (0.03, 2)]
    heights = {(bottom, top) for _, bottom, _, top in spans(ax)}
    assert {(0.5, 1.5), (4.5, 5.5)} <= heights


@pytest.mark.parametrize(
    ("margin", "worst"), [((0.0, np.inf), (-0.04, 2)), ((-0.2, 0.031), (0.03, 3))]
)
def test_worst_is_what_has_least_room_not_what_is_largest(ax, margin, worst):
    figures.forest(ax, EFFECTS.assign(label=list("abcd")), margin=margin)
    assert [(x, y) for x, y, _, filled in bars(ax) if filled] == [worst]


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


def test_gaps_are_simulation_over_theory_less_one(ax):
    verdict = {"b": "refuted"}
    figures.gap(ax, GAPS, "n", hue="kernel", margin=0.05, over=(50, np.inf), verdict=verdict)
    expected = [(10, 0, 0.03), (10, 0.1, 0.02), (100, -0.2, 0.064), (100, -0.01, 0.04)]
    np.testing.assert_allclose([bar[:3] for bar in bars(ax)], expected, atol=1e-12)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["b ✗", "a"]
    assert (50, -0.05, 0.05) in {(left, bottom, top) for left, bottom, _, top in spans(ax)}
    assert "margin ± 5 %" in words(ax)


def test_curve_draws_lines_points_and_the_margin_around_theory(ax):
    figures.curve(ax, CURVE, CURVE, "H", "kept", margin=0.1, verdict=SUPPORTED, log="xy")
    points = [bar[:3] for bar in bars(ax)]
    np.testing.assert_allclose(points, [(1, 1, 0.04), (2, 0.6, 0.06), (4, 0.4, 0.02)])
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [(1, 1), (2, 0.6), (4, 0.4)])
    shaded = {tuple(v) for v in np.round(ax.collections[0].get_paths()[0].vertices, 9)}
    assert {(1.0, 1.1), (1.0, 0.9), (4.0, 0.44)} <= shaded
    assert ax.get_title(loc="right") == "✓ supported"
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_curve_over_words_sets_series_side_by_side(ax):
    frame = pd.DataFrame(
        {
            "stream": ["q", "p", "p"],
            "road": ["one", "one", "other"],
            "simulation": [3.0, 1.0, 2.0],
            "mcse": [0.1, 0.2, 0.3],
            "theory": [3.5, 1.5, 2.5],
        }
    )
    figures.curve(ax, frame, None, "stream", "share", hue="road", verdict={"p": "refuted"})
    points = [bar[:3] for bar in bars(ax)]
    np.testing.assert_allclose(points, [(-0.2, 3.0, 0.2), (0.8, 1.0, 0.4), (1.2, 2.0, 0.6)])
    assert {(-0.36, 3.5, -0.04, 3.5), (1.04, 2.5, 1.36, 2.5)} <= spans(ax)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["q", "p\n✗"]


def test_a_level_keeps_its_colour_where_others_are_missing(ax):
    frame = GAPS.astype({"kernel": pd.CategoricalDtype(["a", "b"])})
    figures.gap(ax, frame[frame["kernel"] == "b"], "n", hue="kernel")
    line = ax.containers[0].lines[0]
    assert (line.get_color(), line.get_marker()) == (figures.PALETTE[1], figures.MARKERS[1])


@pytest.mark.parametrize(
    ("draw", "allowed"),
    [
        (lambda ax: figures.band(ax, 0.0), "a positive number"),
        (lambda ax: figures.badge(ax, "true"), "supported, refuted, inconclusive"),
        (lambda ax: figures.gap(ax, GAPS, "n", hue="kind"), "a column: n, kernel"),
        (lambda ax: figures.gap(ax, GAPS.loc[[0] * 9].assign(k=range(9)), "n", hue="k"), "most 8"),
    ],
)
def test_what_cannot_be_drawn_is_refused(ax, draw, allowed):
    with pytest.raises(InputError, match=allowed):
        draw(ax)


def test_panels_have_verdicts_letters_and_plain_ticks(ax):
    figures.badge(ax, dataclasses.replace(SUPPORTED, kind="program"))
    assert ax.get_title(loc="right") == "✓ by algebra"
    ax.set_title("noise")
    figures.letters([ax])
    assert (ax.get_title(loc="left"), ax.get_title()) == (r"$\mathbf{a}$  noise", "")
    figures.ticks(ax.xaxis, (0.5, 1000, 20000))
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.5", "1,000", "20,000"]
    assert [figures.number(v, percent=True) for v in (-0.05, 0.07, 1)] == ["−5", "7", "100"]


def test_colours_have_contrast():
    """Of WCAG 2: (lighter + 0.05)/(darker + 0.05) of relative luminances."""

    def luminance(color):
        value = np.array(to_rgb(color))
        linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722] + 0.05

    for background in ("white", figures.BAND):
        paper = luminance(background)
        assert paper / max(map(luminance, (*figures.PALETTE, figures.GREY))) >= 3
        assert paper / max(map(luminance, INKS.values())) >= 4.5


def test_a_mosaic_has_panels_of_several_sizes():
    drawing, axes = figures.mosaic(("ab", "cc"), height=3.0, heights=(2, 1))
    drawing.draw_without_rendering()
    a, b, c = (axes[name].get_window_extent() for name in "abc")
    assert c.width > a.width + b.width
    assert a.height > 1.5 * c.height
    assert c.y1 < a.y0


def test_the_guide_draws_what_it_shows_twice_the_same(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.S)
    monkeypatch.chdir(tmp_path)
    made = []
    for _ in range(2):
        exec(code, {})
        made.append({path.name: path.read_bytes() for path in tmp_path.iterdir()})
    assert set(made[0]) == {"own.pdf", "own.png", "own.svg"}
    assert made[0] == made[1]


def test_starting_costs_neither_jax_nor_matplotlib():
    heavy = "{'matplotlib', 'seaborn', 'pandas', 'jax'}"
    code = f"import sys; from sims import figures; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
