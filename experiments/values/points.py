"""Points of both arms, from heads that share values and outputs to heads that share nothing."""

from typing import NamedTuple


class Point(NamedTuple):
    """A point of an arm.

    Attributes:
        arm: what is apart: nothing, outputs or values.
        alignment: κ, the cosine of what two heads write into the layer's output.
    """

    arm: str
    alignment: float


POINTS = (
    Point("shared", 1.0),
    Point("outputs", 0.5),
    Point("outputs", 0.0),
    Point("values", 0.5),
    Point("values", 0.0),
)
"""Shared values come first; each arm goes on from there."""
NAMES = tuple(f"{point.arm}, {point.alignment:g}" for point in POINTS)
"""Names of the points."""
ENDS = ("aligned", "random")
"""Sets of heads: nearly aligned key subspaces, and random ones."""
TEMPERATURES = ("random's best", "aligned's best")
"""One temperature for both sets at each point: the best one of either, by a pilot at this point."""
