"""Files of a figure in one folder: PDF, PNG and clear SVG, the same bytes for the same data."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sims.base.files import write
from sims.figures.theme import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(
    figure: Figure,
    path: str | Path,
    identity: str,
    digest: str = "",
    formats: Sequence[str] = ("pdf", "png", "svg"),
) -> None:
    """Write the figure in each format into one folder, each sealed (:mod:`sims.base.files`).

    Args:
        figure: made with :func:`~sims.figures.layout.panels`, or within
            :func:`~sims.figures.theme.style`.
        path: the path of any of them; its suffix is replaced.
        identity: experiment and fidelity, with which the files are sealed.
        digest: digest of its source files (:func:`sims.base.files.digest`), for the metadata.
        formats: any of pdf, png and svg; each takes half a second.
    """
    # fontTools remarks on the dates in matplotlib's fonts, which nobody here can mend.
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    shown = f"{identity}{digest and ', from data of SHA-256 '}{digest}"
    metadata = {
        "pdf": {"CreationDate": None, "Subject": shown},
        "png": {"Description": shown},
        "svg": {"Date": None, "Description": shown},
    }
    with style():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")  # else every format would lay it out twice again
    for kind in formats:
        buffer = io.BytesIO()
        with style():
            # Pages in a dark room show the SVG on their ground.
            clear = kind == "svg"
            figure.savefig(buffer, format=kind, metadata=metadata[kind], transparent=clear)
        write(buffer.getvalue(), Path(path).with_suffix(f".{kind}"), f"figure.{kind} of {identity}")
