"""What a row of the ledger is worth: what stands behind it, and over what it speaks. No JAX."""

from typing import Literal, get_args

Kind = Literal["program", "theory", "both roads", "simulation"]
"""``program``: true, or false, by algebra for almost every draw, so that it tests the code or a
literal reading; ``theory``: one formula against another,
or theory averaged over drawn problems, with no simulation behind it; ``both roads``: theory against
simulation; ``simulation``: one simulated number against another, or against a number of the claim.
"""
Population = Literal["designs", "targets", "queries", "frames", "seeds"]
"""What may be drawn anew between the batches that an interval rests on: laws of the keys, targets,
queries, frames, and, by ``seeds``, what a seed draws in every simulation: keys and label noise."""

KINDS: tuple[Kind, ...] = get_args(Kind)
POPULATIONS: tuple[Population, ...] = get_args(Population)
TESTED: tuple[Kind, ...] = ("both roads", "simulation")
"""The kinds that make Holm's family of a paper: rows that draws could have turned."""


def is_tested(kind: str | None) -> bool:
    """Whether a row of that kind is of Holm's family; one that does not say its kind is."""
    return kind is None or kind in TESTED
