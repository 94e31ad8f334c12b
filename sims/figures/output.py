"""Files of a figure: PDF, PNG and SVG beside each other, the same bytes for the same data."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sims.figures.theme import style
from sims.files import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    ".svg": {"Creator": None, "Date": None},
}
"""Suffix to the time stamps and versions that its format would write, and that are left out."""


FORMATS = tuple(suffix[1:] for suffix in METADATA)


def save(
    figure: Figure, path: str | Path, whose: str, formats: Iterable[str] = FORMATS
) -> list[Path]:
    """Write the figure as PDF, PNG and SVG beside each other, each sealed (:mod:`sims.files`).

    Args:
        figure: made with :func:`~sims.figures.layout.panels`, or within
            :func:`~sims.figures.theme.style`.
        path: the path of any of the three; its suffix is replaced.
        whose: the experiment and the fidelity that it is of.
        formats: those of "png", "pdf" and "svg" that are wanted.

    Returns:
        The files.
    """
    # fontTools remarks on the dates in matplotlib's fonts, which nobody here can mend.
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    made = []
    for suffix in (f".{one}" for one in formats):
        drawn = io.BytesIO()
        with style():
            figure.savefig(drawn, format=suffix[1:], metadata=METADATA[suffix])
        made.append(Path(path).with_suffix(suffix))
        write(drawn.getvalue(), made[-1], f"figure{suffix} of {whose}")
    return made
