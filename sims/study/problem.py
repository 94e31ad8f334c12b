"""Problems as experiments have them: the fields of a law, and what follows from them. No JAX."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sims.base.identity import rounded_digest
from sims.base.members import cached_names

if TYPE_CHECKING:
    from sims.problem import TrigonometricSeries


class Fields(dict[str, Any]):
    """Fields of a problem as the law draws them.

    Attributes:
        seed: random seed for the law's draws.
        number: number of the problem, from 0; None for one that was not drawn.
        attempt: number of rejected draws of this problem.
    """

    def __init__(
        self, fields: Mapping[str, Any], seed: int, number: int | None = None, attempt: int = 0
    ) -> None:
        super().__init__(fields)
        self.seed = seed
        self.number = number
        self.attempt = attempt


@dataclass(frozen=True, eq=False)
class Drawn:
    """A problem that follows from the fields of its law; experiments add what they make of them.

    Attributes:
        drawn: the law's fields.
    """

    drawn: Mapping[str, Any]

    def __getitem__(self, field: str) -> Any:
        """Value of a field."""
        return self.drawn[field]

    def rng(self, field: str) -> np.random.Generator:
        """A new generator whose seed is a field."""
        return np.random.default_rng(self[field])


def problem_digest(problem: object) -> str:
    """Digest of a problem and its solved (cached) properties, up to rounding."""
    solved = {name: getattr(problem, name) for name in cached_names(problem)}
    return rounded_digest(problem, solved)


def explicit_problem(
    target: "TrigonometricSeries",
    noise_sd: float,
    heads: Mapping[str, Any],
    n: int,
    queries: np.ndarray,
    design: Mapping[str, Any],
) -> dict[str, Any]:
    """The ``problem`` of a file that ``sims decompose`` reads, with every wave and query (Q, d).

    Heads and design are as the file has them.
    """
    names = ("amplitude", "frequency", "phase")
    waves = {name: np.asarray(getattr(target, name)).tolist() for name in names}
    return {
        "dimension": target.dimension,
        "design": design,
        "target": {"kind": "explicit", **waves},
        "noise_sd": float(noise_sd),
        "heads": heads,
        "n": n,
        "queries": {"kind": "explicit", "count": len(queries), "points": queries.tolist()},
    }
