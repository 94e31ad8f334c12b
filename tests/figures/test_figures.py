"""Figures draw what they are given: places, errors, margins, verdicts; and the same bytes again."""

import subprocess
import sys
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from sims import figures
from sims.errors import InputError
from sims.figures.marks import INKS, TINTS, margin_text, spread
from sims.judgement import Verdict

SUPPORTED = Verdict("c", "e", "r", "s", "supported", 0.0, (-0.01, 0.01), 0.05, 0.95, 9, "why")


def axes_of(count=1):
    return figures.panels(1, count)[1][0]


def bars(ax):
    """Centres and half lengths of all error bars, and whether their markers are filled."""
    out = []
    for container in ax.containers:
        line, _, (bar,) = container.lines
        halves = [np.ptp(np.asarray(segment), axis=0).max() / 2 for segment in bar.get_segments()]
        filled = to_hex(line.get_markerfacecolor()) != "#ffffff"
        out += [(x, y, h, filled) for (x, y), h in zip(line.get_xydata(), halves, strict=True)]
    return out


def words(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def note_of(ax):
    return ax.figure.get_supxlabel()


EFFECTS = pd.DataFrame(
    {
        "label": ["first", "second", "second", "second"],
        "value": [0.01, 0.02, -0.04, 0.03],
        "error": [0.001, 0.002, 0.003, 0.004],
        "bound": [0.0, 0.0, 0.005, 0.0],
    }
)


def test_forest_draws_effects_their_errors_and_the_worst():
    (ax,) = axes_of()
    figures.forest(ax, EFFECTS, margin=0.05, bound="bound", verdict={"second": "refuted"})
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
    assert "bars ± 2 MCSE" in note_of(ax)


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
    assert "margin ± 5 %" in words(ax)
    figures.forest(other, EFFECTS, margin={"first": 0.05, "second": (-0.01, 0.02)})
    strips = [c.get_paths()[0].get_extents() for c in other.collections if hasattr(c, "get_paths")]
    spans = {(round(s.x0, 9), round(s.x1, 9), round((s.y0 + s.y1) / 2, 9)) for s in strips}
    assert {(-0.05, 0.05, 0.0), (-0.01, 0.02, 1.0)} <= spans
    figures.gap(third, GAPS, "n", margin=0.05, over=(50, np.inf))
    (fill,) = [c for c in third.collections if type(c).__name__ == "FillBetweenPolyCollection"]
    box = fill.get_paths()[0].get_extents()
    np.testing.assert_allclose([box.x0, box.y0, box.y1], [50, -0.05, 0.05])


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


GAPS = pd.DataFrame(
    {
        "n": [10, 100, 10, 100],
        "kernel": ["b", "b", "a", "a"],
        "simulation": [1.1, 0.99, 2.0, -1.0],
        "mcse": [0.01, 0.02, 0.03, 0.04],
        "theory": [1.0, 1.0, 2.0, -1.25],
    }
)


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
    assert note_of(ax) == "✗ refuted  ·  bars ± 2 MCSE"
    share, error = figures.relative_gap(1.5, 0.1, 1.0, scale=5.0)
    assert (share, error) == (0.1, 0.02)


CURVE = pd.DataFrame({"H": [4, 1, 2], "kept": [0.4, 1.0, 0.6], "kept_mcse": [0.01, 0.02, 0.03]})


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


MAP = pd.DataFrame(
    [
        ("low", "noise", "supported", "−3 %"),
        ("low", "signal", "refuted", "+8 %"),
        ("high", "noise", "inconclusive", "0 %"),
        ("high", "signal", None, "−1 %"),
    ],
    columns=["index", "regime", "verdict", "text"],
)


def test_map_of_verdicts():
    (ax,) = axes_of()
    assert figures.grid_map(ax, MAP, "index", "regime", verdict="verdict", text="text") is None
    cells = {
        (int(p.get_x() + 0.5), int(p.get_y() + 0.5)): to_hex(p.get_facecolor()) for p in ax.patches
    }
    assert cells == {
        (0, 0): TINTS["supported"],
        (1, 0): TINTS["refuted"],
        (0, 1): TINTS["inconclusive"],
        (1, 1): "#ffffff",
    }
    assert words(ax) == ["✓  −3 %", "✗  +8 %", "?  0 %", "−1 %"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["noise", "signal"]
    assert ax.get_ylim() == (1.5, -0.5)


def test_map_of_values_is_dark_where_best():
    ax, other = axes_of(2)
    frame = pd.DataFrame(
        {"n": [1, 1, 10, 10], "width": [1, 2, 1, 2], "excess": [0.0, 1, 2, np.nan]}
    )
    image = figures.grid_map(ax, frame, "width", "n", value="excess", missing="no keys")
    np.testing.assert_allclose(image.get_array().filled(np.nan), [[0, 2], [1, np.nan]])
    dark, light = (sum(to_rgb(image.cmap(shade))) for shade in (0.0, 1.0))
    assert dark < light
    assert words(ax) == ["no keys"]
    named = frame.assign(n=frame["n"].map(str), text=["a", "b", "c", "d"])
    image = figures.grid_map(other, named, "width", "n", value="excess", text="text", best="high")
    assert sum(to_rgb(image.cmap(0.0))) > sum(to_rgb(image.cmap(1.0)))
    assert words(other) == ["a", "c", "b"], "the cell without a value stays empty"


def test_map_refuses_two_rows_of_one_cell():
    with pytest.raises(InputError, match="two rows of one cell"):
        figures.grid_map(
            axes_of()[0], pd.concat([MAP, MAP[:1]]), "index", "regime", verdict="verdict"
        )


def test_verdicts_have_a_word_and_a_sign():
    ax, other = axes_of(2)
    figures.badge(ax, SUPPORTED)
    figures.badge(other, "refuted")
    assert ax.get_title(loc="right") == "✓ supported"
    assert other.get_title(loc="right") == "✗ refuted"
    assert figures.signed("ants", {"ants": SUPPORTED, "trees": "refuted"}) == "ants ✓"
    with pytest.raises(InputError, match="supported, refuted, inconclusive"):
        figures.badge(ax, "true")


def test_a_level_keeps_its_colour_where_others_are_missing():
    kinds = pd.CategoricalDtype(["a", "b"])
    frame = GAPS.astype({"kernel": kinds})
    (one,) = figures.series(frame[frame["kernel"] == "b"], "kernel", None)
    assert (one.color, one.marker) == (figures.PALETTE[1], figures.MARKERS[1])
    many = pd.DataFrame({"kernel": range(9)})
    with pytest.raises(InputError, match="at most 8"):
        list(figures.series(many, "kernel", None))
    with pytest.raises(InputError, match="a column: kernel"):
        list(figures.series(many, "kind", None))


def linear(color):
    value = np.array(to_rgb(color))
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(color, other="#ffffff"):
    """Of WCAG 2: (lighter + 0.05)/(darker + 0.05) of relative luminances."""
    shades = sorted(linear(c) @ [0.2126, 0.7152, 0.0722] + 0.05 for c in (color, other))
    return shades[1] / shades[0]


def oklab(rgb):
    """Björn Ottosson's perceptual space, times 100: about 2 is a just noticeable difference."""
    lms = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return 100 * np.array(lab) @ np.cbrt(np.array(lms) @ np.clip(rgb, 0, 1))


# Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def test_colours_have_contrast():
    assert min(map(contrast, (*figures.PALETTE, figures.GREY))) >= 3
    assert min(map(contrast, INKS.values())) >= 4.5
    assert min(contrast("#000000", tint) for tint in TINTS.values()) >= 4.5


def least_distance(colors, blindness):
    seen = [oklab(np.array(BLINDNESS[blindness]) @ linear(color)) for color in colors]
    return min(np.linalg.norm(a - b) for a, b in combinations(seen, 2))


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_colours_differ_for_the_colour_blind(blindness):
    assert least_distance(figures.PALETTE[:5], blindness) > 7
    assert least_distance(figures.PALETTE, blindness) > 6


def test_colours_differ_in_grey():
    shades = [oklab(np.full(3, linear(c) @ [0.2126, 0.7152, 0.0722]))[0] for c in figures.PALETTE]
    assert min(abs(a - b) for a, b in combinations(shades[:5], 2)) > 4
    tints = [linear(TINTS[v]) @ [0.2126, 0.7152, 0.0722] for v in TINTS]
    assert min(tints) == tints[list(TINTS).index("refuted")]


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


def test_starting_costs_neither_jax_nor_matplotlib():
    heavy = "{'matplotlib', 'seaborn', 'pandas', 'jax'}"
    code = f"import sys; from sims import figures; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_files_are_the_same_bytes_and_whole(tmp_path):
    def draw(name):
        drawing, axes = figures.panels(2, 2)
        figures.forest(axes[0, 0], EFFECTS, margin=0.05, verdict=SUPPORTED, numbers=True)
        figures.gap(axes[0, 1], GAPS, "n", hue="kernel", margin=0.05)
        figures.curve(axes[1, 0], CURVE, CURVE, "H", "kept", log="x")
        figures.grid_map(axes[1, 1], MAP, "index", "regime", verdict="verdict")
        figures.letters(axes.flat)
        figures.save(drawing, tmp_path / name)
        return [(tmp_path / name).with_suffix(s).read_bytes() for s in (".pdf", ".png", ".svg")]

    first = draw("one.pdf")
    assert first == draw("two.png")
    assert len(list(tmp_path.iterdir())) == 6
    assert b"<dc:date>" not in first[2]
    assert b"<text" not in first[2], "an SVG needs no font of its reader's"


def test_a_remark_is_made_once_in_a_figure_of_any_make_up():
    drawing, _ = figures.panels()
    for part in drawing.subfigures(2, 1):
        figures.gap(part.subplots(), GAPS, "n", margin=0.05)
    assert drawing.get_supxlabel() == "bars ± 2 MCSE"
