"""Changes of an answer along the law, and the field that decides it alone. No JAX."""

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sims.judgement import conventions
from sims.judgement.effects import Effects
from sims.judgement.outcomes import FAILS, HOLDS
from sims.judgement.tally import tally
from sims.judgement.wording import percent, significant

CONDITIONS = {"True": "if so", "False": "if not"}
"""Values of a yes-or-no parameter, after a number."""
MOST_GROUPS = 4
"""Maximum number of groups shown; if there are more, the lowest and the highest are."""
FIRST = ("selectivity", "family")
"""Parameters that are named before others."""


@dataclass(frozen=True)
class Change:
    """Change of the answer along a parameter of the law.

    Attributes:
        parameter: its name.
        groups: its quarters, or its values if they are few.
        values: share, T95 or mean in each.
        percent: whether these are percentages.
    """

    parameter: str
    groups: list[str]
    values: list[float]
    percent: bool

    def in_words(self) -> str:
        """The values in the lowest and the highest quarter, or by name."""
        shown = [*map(percent if self.percent else significant, self.values)]
        if all(" to " in group for group in self.groups):
            ends = f"{shown[0]} in the lowest quarter of problems, {shown[-1]} in the highest"
            return f"{self.parameter}: {ends}"
        groups = [CONDITIONS.get(group, f"for {group}") for group in self.groups]
        rows = list(zip(self.values, groups, shown, strict=True))
        if len(rows) > MOST_GROUPS:
            rows = [min(rows), max(rows)]
        return f"{self.parameter}: " + "; ".join(f"{value} {group}" for _, group, value in rows)


def changes(
    effects: Effects,
    selected: np.ndarray,
    parameters: pd.DataFrame,
    by_theory: bool,
) -> list[Change]:
    """Up to two parameters along which the answer changes, by quarters or values.

    Selectivity and family come first, then those along which it changes most.
    Only parameters that pass Kruskal and Wallis's test over all parameters count. A problem without
    an answer is in no group: it is undecided, the question has no meaning in it, or it is outside
    theory's range where theory decides. Neither is a problem without a value of the parameter.
    """
    from scipy.stats import kruskal  # slow to load

    score = scores(effects, by_theory)
    usable = selected[: len(score)] & np.isfinite(score)
    candidates = []
    for name in parameters.columns:
        column = parameters[name].iloc[: len(score)]
        rows = usable & column.notna().to_numpy()
        groups = {}
        for label, members in group_rows(column[rows]).items():
            if len(members) >= conventions.SHOWN:
                groups[label] = score[rows][members]
        if len(groups) < 2 or np.ptp(np.concatenate([*groups.values()])) == 0:
            continue
        if kruskal(*groups.values()).pvalue > (1 - conventions.LEVEL) / len(parameters.columns):
            continue
        values = []
        for group in groups.values():
            is_gap = effects.kind == "gap"
            size = np.quantile(abs(group), conventions.WITHIN) if is_gap else group.mean()
            values.append(float(size))
        candidates.append(Change(str(name), [*groups], values, effects.kind != "mean"))
    return sorted(candidates, key=lambda c: (c.parameter not in FIRST, -np.ptp(c.values)))[:2]


def deciding_field(
    effects: Effects,
    selected: np.ndarray,
    parameters: pd.DataFrame,
    by_theory: bool,
) -> Change | None:
    """Field whose values decide the answer, so that a share only measures how often each is drawn.

    At each of its values the interval of the share lies above 95 % or below 5 %, and both occur.
    """
    call = effects.predicted_call if by_theory else effects.call
    usable = selected[: len(call)] & np.isfinite(call)
    for name in parameters.columns:
        groups = group_rows(parameters[name].iloc[: len(call)][usable])
        shares: list[float] = []
        kinds: set[str] = set()
        for rows in groups.values():
            counted = tally(call[usable][rows], level_holds=effects.level_holds)
            if counted is not None:
                shares.append(float(np.mean(counted.bracket)))
                kinds.add(_kind(*counted.interval))
        if kinds == {"all", "none"}:
            return Change(str(name), list(groups), shares, percent=True)
    return None


def _kind(low: float, high: float) -> str:
    """Kind of a share's interval: nearly all hold, nearly none hold, or neither."""
    if low > conventions.LEVEL:
        return "all"
    return "none" if high < 1 - conventions.LEVEL else "some"


def scores(effects: Effects, by_theory: bool) -> np.ndarray:
    """Values to average over a group of problems, (N,) or (M,); NaN where there is no answer.

    For a share they are 1 where the claim holds and 0 where it fails, otherwise the effect.

    Args:
        effects: effects of N simulated problems, and of M by theory.
        by_theory: use theory's effects.
    """
    if effects.kind in ("share", "outcome"):
        call = effects.predicted_call if by_theory else effects.call
        return np.select([call == HOLDS, call == FAILS], [1.0, 0.0], np.nan)
    if not by_theory or effects.predicted is None:
        return effects.value
    inside = True if effects.valid is None else effects.valid
    return np.where(inside, effects.predicted, np.nan)


def group_rows(column: pd.Series) -> dict[str, np.ndarray]:
    """Indices of rows by the quarter of their number, or by value if values are few."""
    if not pd.api.types.is_numeric_dtype(column) or column.nunique() <= 4:
        groups = column.groupby(column).indices.items()
        return {str(value): np.asarray(rows) for value, rows in groups}
    edges = np.unique(np.quantile(column, np.linspace(0, 1, 5)))
    quarter = np.searchsorted(edges[1:-1], column, "right")
    ends = enumerate(itertools.pairwise(edges))
    return {f"{low:.3g} to {high:.3g}": np.flatnonzero(quarter == k) for k, (low, high) in ends}
