"""The rules of weights on trial, by name, and the points at which they are tried."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sims.weights import FACTORIES, WeightRule

POWERS = {"sparsemax": 1.0, "1.5-entmax": 2.0}
"""Adaptive rules, by their ν; all others are kernels of that name."""
COMPACT = ("epanechnikov", "biweight", "triweight")


def rule_of(name: str) -> str | WeightRule:
    """A kernel's name, or the rule of distances."""
    return FACTORIES["entmax"](nu=POWERS[name], scores="distance") if name in POWERS else name


class Point(NamedTuple):
    """One rule at one size.

    Attributes:
        group: ``many`` keys and ``few``, at one n_eff/n; ``flat``, at a larger one, with softmax;
            ``mild``, softmax alone, at a still larger one.
        rule: its name.
        width: d_k.
        n: number of keys.
        bandwidth: b at which n_eff/n is what the group has.
    """

    group: str
    rule: str
    width: int
    n: int
    bandwidth: float

    @property
    def name(self) -> str:
        """As in the results."""
        return f"{self.group}, {self.rule}, d_k={self.width}"


def points(settings: Mapping[str, Any]) -> Iterator[Point]:
    """Every point of the experiment."""
    many = settings["n"]
    for group in ("many", "few", "flat", "mild"):
        n = settings["few"] if group == "few" else many
        for width, rules in settings["many" if group == "few" else group].items():
            for rule, bandwidth in rules.items():
                # A kept c/n = (2b²ν)^ν/n keeps the radius of the population.
                scale = (n / many) ** (0.5 / POWERS[rule]) if rule in POWERS else 1.0
                yield Point(group, rule, int(width), n, scale * bandwidth)
