"""Marks for groups of problems: outcomes as stacked bars, and quartiles along a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sims.figures.layout import describe
from sims.figures.marks import QUARTILES, band, dots, quartiles
from sims.figures.theme import PALETTE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from sims.judgement.answers import Answer

OUTCOME_INKS = {"holds": PALETTE[0], "level": "0.72", "undecided": "0.9", "fails": PALETTE[1]}
"""Outcome to its colour, in the order of the bars."""


def outcome_bars(
    ax: Axes,
    rows: Mapping[str, Mapping[str, float]],
    inks: Mapping[str, str] = OUTCOME_INKS,
    title: str = "",
) -> None:
    """Draw one bar per question, from the top, split into the shares of its outcomes.

    Args:
        ax: the axes.
        rows: name of the question to its shares by outcome, which sum to 1.
        inks: outcome to its colour, in the order of the bars.
        title: of the panel.
    """
    left = np.zeros(len(rows))
    places = -np.arange(len(rows))
    for outcome, ink in inks.items():
        width = 100 * np.array([parts.get(outcome, 0) for parts in rows.values()])
        ax.barh(places, width, left=left, color=ink, height=0.42, label=outcome)
        left += width
    for place, name in zip(places, rows, strict=True):
        ax.text(0, place + 0.25, name)
    ax.spines["left"].set_visible(False)
    ax.set(xlim=(0, 100), ylim=(-len(rows) + 0.6, 0.75), yticks=[])
    describe(ax, "problems (%; n in brackets)", "", title)


def outcomes_of_answers(
    answers: Mapping[str, Answer], labels: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """Shares of the outcomes by question, each with its number of problems, for the bars.

    Args:
        answers: answers by id.
        labels: id of a question to its name; a question without outcomes is omitted.
    """
    rows = {}
    for name, label in labels.items():
        shares = answers[name].shares() if name in answers else {}
        counted = shares["all"].deciding if shares else None
        if counted is not None:
            rows[f"{label} ({counted.total})"] = counted.parts
    return rows


def binned(ax: Axes, x: ArrayLike, values: ArrayLike, ink: str, **line: Any) -> None:
    """Median and middle half of values in groups of equal size along x, at the groups' medians.

    There are up to six groups, of at least four problems.

    Args:
        ax: the axes.
        x: (N,) a parameter of the problems.
        values: (N,) their effects; problems without one are omitted.
        ink: colour of line and band.
        **line: options of ``Axes.plot``.
    """
    known = np.isfinite(np.asarray(values, float))
    places_of = np.asarray(x, float)[known]
    effects = np.asarray(values, float)[known]
    groups = np.array_split(np.argsort(places_of), max(1, min(6, len(effects) // 4)))
    if len(effects):
        places = [np.median(places_of[rows]) for rows in groups]
        parts = [np.quantile(effects[rows], QUARTILES) for rows in groups]
        band(ax, places, np.transpose(parts), ink, marker="o", **line)


def binned_by(ax: Axes, frame: pd.DataFrame, x: str, y: str, hue: str) -> None:
    """The same for each group of problems, labelled with its number of problems.

    Args:
        ax: the axes.
        frame: a row a problem.
        x: column of the parameter.
        y: column of the effects.
        hue: column of the groups.
    """
    for ink, (kind, rows) in zip(PALETTE, frame.groupby(hue), strict=False):
        binned(ax, rows[x], rows[y], ink, label=f"{kind} (n = {len(rows)})")


def dots_by(ax: Axes, frame: pd.DataFrame, x: str, y: str, hue: str, **look: Any) -> None:
    """Problems as points, each group in its colour; arguments as in :func:`binned_by`.

    ``look`` are options of ``Axes.plot``.
    """
    for place, (kind, rows) in enumerate(frame.groupby(hue)):
        dots(ax, rows[x], rows[y], place, f"{kind} (n = {len(rows)})", **look)


def quartiles_by(ax: Axes, x: ArrayLike, values: np.ndarray, kinds: pd.Series) -> None:
    """Median and middle half of curves (N, X) over x, for each kind of problem, (N,)."""
    for ink, (kind, rows) in zip(PALETTE, kinds.groupby(kinds.to_numpy()), strict=False):
        label = f"{kind} (n = {len(rows)})"
        quartiles(ax, x, values[rows.index], ink, label=label, marker="o")
