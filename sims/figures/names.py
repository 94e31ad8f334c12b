"""Names beside the ends of lines, which need no legend then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation


def name_ends(ax: Axes, names: Mapping[str, tuple[float, float, str]]) -> None:
    """Names beside the right ends of lines, moved apart where they would lie on one another.

    Args:
        ax: the axes.
        names: each name to the end's x and y, and its colour.
    """
    if not names:
        return
    ordered = sorted(names.items(), key=lambda item: item[1][1])
    texts = [
        ax.annotate(
            text, (x, y), xytext=(6, 0), textcoords="offset points", va="center", fontsize=7,
            color=colour, annotation_clip=False,
        )
        for text, (x, y, colour) in ordered
    ]  # fmt: skip
    ax.add_artist(_apart(ax, texts))


def _apart(ax: Axes, texts: Sequence[Annotation]) -> Artist:
    """What moves names apart when they are drawn: only then is it known how high the axes are."""
    from matplotlib.artist import Artist

    class Apart(Artist):
        """Drawn before the names, and itself nothing to be seen."""

        def draw(self, renderer: object) -> None:
            """Place the names."""
            scale = ax.figure.dpi / 72
            height = np.array([ax.transData.transform(text.xy)[1] for text in texts]) / scale
            for text, shift in zip(texts, spread(height, 1.2 * 7) - height, strict=True):
                text.xyann = (6, shift)

    artist = Apart()
    artist.set(zorder=-1, in_layout=False)
    return artist


def spread(places: np.ndarray, least: float) -> np.ndarray:
    """Ascending places moved apart to be at least ``least`` from one another, as little as can be.

    Least squares under the gaps asked for: places less their rank's share are made monotone
    (pool adjacent violators), then the share is added back.
    """
    shares = least * np.arange(len(places))
    blocks: list[list[float]] = []
    for value in places - shares:
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    return np.concatenate([np.full(len(b), np.mean(b)) for b in blocks] or [np.zeros(0)]) + shares
