"""Sheets: one column and two, remarks, files; and the guide's example."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sims import figures
from sims.errors import InputError
from tests.figures.helpers import CURVE, EFFECTS, GAPS, SUPPORTED, axes_of, note_of
from tests.figures.test_maps import MAP

GUIDE = Path(__file__).parents[2] / "docs" / "figures.md"


def test_files_are_the_same_bytes_and_whole(tmp_path):
    def draw(name):
        drawing, axes = figures.panels(2, 2)
        figures.forest(axes[0, 0], EFFECTS, margin=0.05, verdict=SUPPORTED, numbers=True)
        figures.gap(axes[0, 1], GAPS, "n", hue="kernel", margin=0.05)
        figures.curve(axes[1, 0], CURVE, CURVE, "H", "kept", log="x")
        figures.grid_map(axes[1, 1], MAP, "index", "regime", verdict="verdict")
        figures.letters(axes.flat)
        figures.save(drawing, tmp_path / name, "e at smoke")
        return [(tmp_path / name).with_suffix(s).read_bytes() for s in (".pdf", ".png", ".svg")]

    first = draw("one.pdf")
    assert first == draw("two.png")
    assert len(list(tmp_path.iterdir())) == 6
    assert b"<dc:date>" not in first[2]
    assert b"<text" not in first[2], "an SVG needs no font of its reader's"
    drawing, _ = figures.panels()
    alone = tmp_path / "alone" / "figure.svg"
    alone.parent.mkdir()
    assert figures.save(drawing, alone, "e at smoke", ["svg"]) == [alone]
    assert list(alone.parent.iterdir()) == [alone]


def test_the_guide_draws_what_it_shows(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.S)
    monkeypatch.chdir(tmp_path)
    drawn = {}
    exec(code, drawn)
    assert {path.name for path in tmp_path.iterdir()} == {"own.pdf", "own.png", "own.svg"}
    assert note_of(drawn["axes"][0, 0]).startswith("✓ supported  ·  ✗ refuted")


def test_a_remark_is_made_once_in_a_figure_of_any_make_up():
    drawing, _ = figures.panels()
    for part in drawing.subfigures(2, 1):
        figures.gap(part.subplots(), GAPS, "n", margin=0.05)
    assert drawing.get_supxlabel() == "bars: ± 2 MCSE (Monte Carlo standard errors)"


def test_remarks_begin_with_verdicts_and_go_on_in_a_new_line():
    (ax,) = axes_of()
    for text in ("one remark", "✗ refuted", "✓ supported", "one remark"):
        figures.note(ax, text)
    assert note_of(ax) == "✓ supported  ·  ✗ refuted  ·  one remark"
    long = "a remark " * 12
    figures.note(ax, long)
    assert note_of(ax) == f"✓ supported  ·  ✗ refuted  ·  one remark\n{long}"


def test_one_column_sets_panels_one_below_another():
    title = "A sentence that is rather longer than one column of a page is wide"
    wide, _ = figures.panels(2, 2, height=4.0, title=title)
    assert wide.get_size_inches() * 25.4 == pytest.approx([183, 4.0 * 25.4])
    with figures.preset("one-column"):
        tall, axes = figures.panels(2, 2, height=4.0, title=title)
        single, _ = figures.panels(width=figures.COLUMN, height=2.0)
        pieces, by_name = figures.mosaic(("ab", "ac"), height=4.0, heights=(1, 3))
        other, _ = figures.mosaic(("ab", "ac"), height=4.0, heights=(1, 3), stacked={"a": 1})
    assert tall.get_size_inches()[0] * 25.4 == pytest.approx(89)
    assert tall.get_size_inches()[1] == pytest.approx(8.0, abs=0.2)
    assert "\n" in tall.get_suptitle()
    tall.draw_without_rendering()
    tops = [ax.get_position().y0 for ax in axes.flat]
    assert axes.shape == (2, 2)
    assert np.diff(tops).max() < 0
    assert len({round(ax.get_position().width, 6) for ax in axes.flat}) == 1
    assert single.get_size_inches()[1] == 2.0
    assert pieces.get_size_inches() == pytest.approx([89 / 25.4, 8.0])
    assert other.get_size_inches()[1] == pytest.approx(5.0)
    pieces.draw_without_rendering()
    heights = [by_name[name].get_window_extent().height for name in "abc"]
    assert heights[0] > heights[2] > heights[1]
    assert figures.panels()[0].get_size_inches()[0] * 25.4 == pytest.approx(183)
    with pytest.raises(InputError, match="one-column, two-column"), figures.preset("poster"):
        pass


def test_a_mosaic_has_panels_of_several_sizes():
    drawing, axes = figures.mosaic(("ab", "cc"), height=3.0, widths=(2, 1))
    assert list(axes) == ["a", "b", "c"]
    drawing.draw_without_rendering()
    a, b, c = (
        axes[name].get_window_extent().transformed(drawing.transFigure.inverted()) for name in "abc"
    )
    assert a.width > 1.5 * b.width
    assert c.width > a.width
    assert c.y1 < a.y0


def test_starting_costs_neither_jax_nor_matplotlib():
    heavy = "{'matplotlib', 'seaborn', 'pandas', 'jax'}"
    code = f"import sys; from sims import figures; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
