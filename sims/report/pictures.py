"""Pictures inside the page: an experiment's figure, made small; an interval and its margin."""

import base64
import io
import math
from pathlib import Path
from typing import NamedTuple

from PIL import Image, features

from sims import files
from sims.judgement import Verdict
from sims.study.schema import ClaimSpec

WIDTH = 800
"""Pixels across a figure in the page, about as wide as its text; the file has more of them."""
COLOURS = 32
"""Of a figure kept as PNG: its inks, and their steps towards the paper."""
QUALITY = 28
"""Of a figure kept as AVIF, of 100: the least at which its smallest letters stay sharp."""
LONG, HIGH = 260, 22
"""Size of an interval's picture."""


class Figure(NamedTuple):
    """A figure as the page carries it.

    Attributes:
        source: a ``data:`` address.
        width: pixels.
        height: pixels.
    """

    source: str
    width: int
    height: int


def figure(folder: Path, whose: str) -> Figure:
    """The figure of an experiment's folder, in the smallest of the forms that browsers show.

    Tried are its SVG as it is, and its PNG at :data:`WIDTH` pixels, again as PNG of few colours
    and, where Pillow was built with it, as AVIF.

    Raises:
        InputError: a file cannot be believed (:mod:`sims.files`).
    """
    drawn = Image.open(io.BytesIO(files.read(folder / "figure.png", f"figure.png of {whose}")))
    width = min(WIDTH, drawn.width)
    small = drawn.convert("RGB").resize(
        (width, round(drawn.height * width / drawn.width)), Image.Resampling.LANCZOS
    )
    forms = {"png": _saved(_few_colours(small), "PNG", optimize=True)}
    if features.check("avif"):
        forms["avif"] = _saved(small, "AVIF", quality=QUALITY, subsampling="4:4:4", speed=8)
    if (folder / "figure.svg").exists():
        forms["svg+xml"] = files.read(folder / "figure.svg", f"figure.svg of {whose}")
    kind = min(forms, key=lambda form: len(forms[form]))
    text = base64.b64encode(forms[kind]).decode()
    return Figure(f"data:image/{kind};base64,{text}", *small.size)


def _few_colours(image: Image.Image) -> Image.Image:
    return image.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def _saved(image: Image.Image, form: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def interval(v: Verdict, claim: ClaimSpec | None) -> str:
    """A verdict's interval over the values that its claim allows, as inline SVG.

    The band is what the claim allows, the line in it the value that it names, the bar the interval
    and the dot the effect. One that has no interval has the dot alone.

    Args:
        v: the verdict.
        claim: its claim in the experiment file, which says what is allowed.

    Returns:
        "" for rows that are exact checks, that have no effect, or that the file has no more.
    """
    if v.kind == "program" or v.effect is None or claim is None:
        return ""
    low, high = v.interval or (v.effect, v.effect)
    first, last, named = _allowed(claim)
    shown = [x for x in (low, high, v.effect, first, last, named) if math.isfinite(x)]
    left, right = min(shown), max(shown)
    room = 0.1 * (right - left) or abs(right) or 1.0
    left, right = left - room, right + room

    def at(x: float) -> int:
        return round(LONG * (min(max(x, left), right) - left) / (right - left))

    band, middle = max(at(last) - at(first), 2), HIGH // 2
    bar = f'<path class=i d="M{at(low)} {middle}H{at(high)}"/>' if low < high else ""
    return (
        f'<svg viewBox="0 0 {LONG} {HIGH}" aria-hidden=true>'
        f'<rect x={at(first)} width={band} height={HIGH} /><path d="M{at(named)} 0v{HIGH}"/>{bar}'
        f"<circle cx={at(v.effect)} cy={middle} r=4 /></svg>"
    )


def _allowed(claim: ClaimSpec) -> tuple[float, float, float]:
    """The least and the largest effect that a claim allows, and the one that it names."""
    if claim.test in ("ordering", "law"):
        return claim.margin, math.inf, claim.margin
    if claim.test in ("rate", "remainder", "exponent"):
        assert claim.expected is not None
        return claim.expected - claim.margin, claim.expected + claim.margin, claim.expected
    if claim.test == "equivalence":
        return -claim.margin, claim.margin, 0.0
    return -math.inf, claim.margin, 0.0
