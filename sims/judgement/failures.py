"""How a problem fails, in words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sims.judgement.effects import Effects
from sims.judgement.wording import percent, significant

if TYPE_CHECKING:
    from sims.study.schema import QuestionSpec

SAME = 0.05
"""Relative difference, at most, of an effect from the change of the quantity that it measures."""


def failure_in_words(question: "QuestionSpec", effects: Effects, number: int) -> str:
    """Sentence on how a problem fails, with Monte Carlo standard errors.

    Of an outcome it tells the comparison that fails most. Where the question names the sets of a
    ladder, it tells the quantity at both, relative to the first set.
    """
    values, errors = (np.atleast_1d(part[number]) for part in (effects.value, effects.error))
    place = int(np.argmin(values)) if effects.kind != "gap" else 0
    value, error = values[place], percent(errors[place])
    size = np.nan if effects.size is None else effects.size[number]
    names = question.compared
    if effects.kind == "gap":
        return f"The gap is {percent(value)} (± {error})."
    if effects.kind == "share":
        missed = f"{significant(-value)} (± {significant(errors[place], 2)})"
        moved = "" if np.isnan(size) else f"the {question.quantity} {_moved(size)}, and "
        return f"There {moved}the claim misses its threshold by {missed}."
    if not names and not np.isclose(size, -value, rtol=SAME):
        return f"The effect is {percent(value)} (± {error}); the claim needs a positive one."
    moved = f"the {question.quantity} {_moved(-value)} (± {error})"
    if not names:
        return f"There {moved}."
    if len(names) == len(values):
        return f"Compared with {names[place]}, {moved}."
    before, after = np.cumprod([1, *(1 - values)])[place : place + 2]
    return (
        f"From {names[place]} to {names[place + 1]} {moved}: from {significant(before)} to "
        f"{significant(after)} of that of {names[0]}."
    )


def _moved(change: float) -> str:
    """A relative change as a verb."""
    return f"{'rises' if change > 0 else 'falls'} by {percent(abs(change))}"


def drawn_fields(row: pd.Series, labels: Mapping[str, str]) -> dict[str, str]:
    """Drawn fields of a problem that have labels, by label."""
    facts = {}
    for name, label in labels.items():
        if name in row.index and pd.notna(value := row[name]):
            is_number = isinstance(value, float | np.floating)
            text = significant(float(value)) if is_number else str(value)
            facts[label] = {"True": "yes", "False": "no"}.get(text, text)
    return facts
