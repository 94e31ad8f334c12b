"""Exponents at many keys, and on the way there."""

from typing import Any

from matplotlib.figure import Figure

from sims import figures
from sims.figures.groups import dots_by
from sims.judgement import conventions
from sims.judgement.answers import Answers
from sims.study.panels import Panels

from .pools import FITTED, POOLS


def numbers(panels: Panels) -> dict[str, Any]:
    """Exponents at common sizes over the stated ones, by least squares and hierarchically.

    They are of one head and of averaged ones.
    """
    fits = {}
    for place, pool in enumerate(POOLS[:2]):
        fits[pool] = {name: panels[name][place] for name in FITTED}
    return {"exponents": fits}


def figure(panels: Panels, answers: Answers) -> Figure:
    """The figure; slopes and gaps are those that the answers count."""
    subject = "At many keys, a head's error"
    title = answers["rates"].sentence(subject, "falls at the classical rate")
    drawing, (left, right) = figures.pairs(2, title=title, height=2.8)
    tolerance = conventions.TOLERANCES["slope"]
    left.axhspan(-tolerance, tolerance, color=figures.BAND, zorder=0, label="tolerance")
    frame = panels.parameters.assign(stated=panels["stated"])
    frame["off"] = panels["slope"] - frame["stated"]
    frame["width"] = frame["width"].map("$d_k$ = {}".format)
    dots_by(left, frame, "stated", "off", "width")
    figures.describe(
        left,
        "stated exponent $−2β/(2β + d_k)$",
        "slope − stated exponent",
        "Slopes are as stated from 7·10⁷ keys on",
    )
    local = panels["local"]
    for place, name in enumerate(POOLS):
        ink = figures.PALETTE[place]
        figures.quartiles(right, panels["middle"], local[:, place], ink, label=name)
    figures.dotted(right)
    figures.describe(
        right,
        "number of keys $n$",
        "local slope − stated exponent",
        f"Averaging slows the approach (n = {len(local)})",
        log="x",
    )
    return drawing
