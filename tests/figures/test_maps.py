"""Maps show every pair, its verdict without colour too, and where values are best."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from sims import figures
from sims.errors import InputError
from sims.figures.marks import INKS, TINTS
from tests.figures.helpers import axes_of, note_of, words

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
    (ax,) = axes_of()
    frame = pd.DataFrame(
        {"n": [1, 1, 10, 10], "width": [1, 2, 1, 2], "excess": [0.0, 1, 2, np.nan]}
    )
    image = figures.grid_map(ax, frame, "width", "n", value="excess", missing="no keys")
    np.testing.assert_allclose(image.get_array().filled(np.nan), [[0, 2], [1, np.nan]])
    dark, light = (sum(to_rgb(image.cmap(shade))) for shade in (0.0, 1.0))
    assert dark < light
    assert words(ax) == ["no keys"]
    image = figures.grid_map(ax, frame, "width", "n", value="excess", best="high")
    assert sum(to_rgb(image.cmap(0.0))) > sum(to_rgb(image.cmap(1.0)))


def test_map_refuses_two_rows_of_one_cell():
    with pytest.raises(InputError, match="two rows of one cell"):
        figures.grid_map(
            axes_of()[0], pd.concat([MAP, MAP[:1]]), "index", "regime", verdict="verdict"
        )


DOTS = pd.DataFrame(
    [("low", "noise", "supported", 0.0), ("low", "signal", "refuted", 1.0),
     ("high", "noise", "inconclusive", 0.5), ("high", "signal", None, 0.0)],
    columns=["index", "regime", "verdict", "size"],
)  # fmt: skip


def test_dots_tell_verdicts_by_shape_and_filling_and_sizes_by_diameter():
    (ax,) = axes_of()
    figures.dot_map(ax, DOTS, "index", "regime", verdict="verdict", size="size", key={"much": 1.0})
    dots = {tuple(int(v[0]) for v in line.get_data()): line for line in ax.lines}
    assert [dots[place].get_marker() for place in ((0, 0), (1, 0), (0, 1), (1, 1))] == list("oos_")
    assert to_hex(dots[1, 0].get_markerfacecolor()) == INKS["refuted"]
    assert {to_hex(dots[place].get_markerfacecolor()) for place in ((0, 0), (0, 1))} == {"#ffffff"}
    diameters = [dots[place].get_markersize() for place in ((0, 0), (0, 1), (1, 0))]
    assert np.diff(diameters) == pytest.approx([4, 4])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["much"]
    assert note_of(ax) == "filled: refuted  ·  ring: supported  ·  square: inconclusive"
    assert [t.get_text() for t in ax.get_yticklabels()] == ["low", "high"]
    for frame in (pd.concat([DOTS, DOTS[:1]]), DOTS.assign(size=2.0)):
        with pytest.raises(InputError, match=r"two rows of one cell|0 to 1"):
            figures.dot_map(ax, frame, "index", "regime", verdict="verdict", size="size")
