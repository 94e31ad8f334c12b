"""Problems as experiments have them: the fields of a law, and what follows from them. No JAX."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


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
