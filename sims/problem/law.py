"""A law of problems: every field is a constant or a draw, so that nobody chooses the problem."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sims.base.errors import InputError

DRAWN = "drawn"
"""A field that is the seed of a separate draw: of frames, a target, a rotation."""
_SPANS = ("uniform", "loguniform")


@dataclass(frozen=True)
class Law:
    """Distribution of the fields of a problem.

    A field is a constant; a list, whose values are equally likely; ``{uniform: [low, high]}`` or
    ``{loguniform: [low, high]}``, a number between the two; or ``drawn``, a seed. The key ``text``
    describes the law in words, and is not a field.

    Raises:
        InputError: a field has another form.
    """

    fields: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.fields, Mapping):
            raise InputError("law", self.fields, "fields, and how each is drawn")
        object.__setattr__(self, "fields", {k: v for k, v in self.fields.items() if k != "text"})
        for name, how in self.fields.items():
            if isinstance(how, list) and how:
                continue
            if not isinstance(how, Mapping | list):
                continue
            span = next(iter(how.items())) if isinstance(how, Mapping) and len(how) == 1 else None
            allowed = "a constant, a list of values, {uniform: [low, high]}, {loguniform: …}, drawn"
            if span is None or span[0] not in _SPANS:
                raise InputError(f"law.{name}", how, allowed)
            if not _is_span(*span):
                raise InputError(
                    f"law.{name}.{span[0]}", span[1], "[low, high], low < high, in range"
                )

    def draw(self, seed: int, problem: int, attempt: int = 0) -> dict[str, Any]:
        """Fields of one problem. Every field of every attempt has a separate random stream.

        Hence neither a rejected problem nor an added field changes any other draw.

        Args:
            seed: random seed for the law's draws.
            problem: number i of the problem, from 0.
            attempt: number of rejected draws of this problem.
        """
        drawn = {}
        for name, how in self.fields.items():
            rng = np.random.default_rng([seed, problem, attempt, zlib.crc32(name.encode())])
            if isinstance(how, list):
                drawn[name] = how[rng.integers(len(how))]
            elif isinstance(how, Mapping):
                drawn[name] = _value(how, rng.uniform())
            else:
                drawn[name] = int(rng.integers(2**62)) if how == DRAWN else how
        return drawn


def _is_span(kind: str, ends: Any) -> bool:
    """True for two numbers in order, positive if the scale is logarithmic."""
    match ends:
        case [int() | float() as low, int() | float() as high]:
            return low < high and (kind != "loguniform" or low > 0)
    return False


def _value(how: Mapping[str, Any], share: float) -> float:
    """Quantile of a span."""
    kind, (low, high) = next(iter(how.items()))
    return low * (high / low) ** share if kind == "loguniform" else low + share * (high - low)
