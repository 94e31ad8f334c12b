"""Files of a figure: PDF, PNG and SVG beside each other, the same bytes for the same data."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from sims.figures.theme import style
from sims.files import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(figure: Figure, path: str | Path, identity: str, digest: str = "") -> None:
    """Write the figure as PDF, PNG and SVG beside each other, each sealed (:mod:`sims.files`).

    Args:
        figure: made with :func:`~sims.figures.layout.panels`, or within
            :func:`~sims.figures.theme.style`.
        path: the path of any of the three; its suffix is replaced.
        identity: experiment and fidelity, with which the files are sealed.
        digest: of the files that it shows (:func:`sims.files.digest`), for the metadata.
    """
    # fontTools remarks on the dates in matplotlib's fonts, which nobody here can mend.
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    shown = f"{identity}{digest and ', from data of SHA-256 '}{digest}"
    formats = {
        "pdf": {"CreationDate": None, "Subject": shown},
        "png": {"Description": shown},
        "svg": {"Date": None, "Description": shown},
    }
    for kind, metadata in formats.items():
        buffer = io.BytesIO()
        with style():
            figure.savefig(buffer, format=kind, metadata=metadata)
        write(buffer.getvalue(), Path(path).with_suffix(f".{kind}"), f"figure.{kind} of {identity}")
