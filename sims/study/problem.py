"""Problems as experiments have them: the fields of a law, and what follows from them. No JAX."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sims.problem import TrigonometricSeries


@dataclass(frozen=True, eq=False)
class Drawn:
    """A problem that follows from the fields of its law; experiments add what they make of them.

    Attributes:
        drawn: the law's fields.
    """

    drawn: Mapping[str, Any]

    def rng(self, field: str) -> np.random.Generator:
        """A new generator whose seed is a field."""
        return np.random.default_rng(self.drawn[field])


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
