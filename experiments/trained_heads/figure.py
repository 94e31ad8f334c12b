"""Error against index along the path of training, and what the gain is made of."""

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from sims import figures
from sims.effects import Effect
from sims.estimates import mcse, ratio
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    INDICES,
    Layer,
    beyond_identical,
    effects,
    error,
    layers,
)

VALUES = {"pooled": "pool", "free": "free"}
NUMBERS = {"two": 2, "four": 4}
SHARES = {
    "covariance explains the gain": "covariance",
    "decorrelation of errors explains the gain": "products of errors",
    "ambiguity explains the gain": "ambiguity",
    "the index of errors explains the gain": "index of errors",
}
"""Regime of the claims of each reading to the reading, of whose share they are."""
RISES = {
    "subspaces part": ("subspaces", "rise of subspaces"),
    "outputs decorrelate": ("outputs", "rise of outputs"),
    "errors decorrelate": ("errors", "rise of errors"),
    "better than identical heads": ("fall of the error", "better than identical heads"),
}
PATHS = {
    "error against subspaces along the path": ("subspaces", "falls with subspaces along the path"),
    "error against errors along the path": ("errors", "falls with errors along the path"),
}
ACROSS = {
    "error against subspaces across seeds": ("subspaces", "falls with subspaces across seeds"),
    "error against errors across seeds": ("errors", "falls with errors across seeds"),
}


Row = tuple[str, str, str, dict[str, str | int]]
"""Regime of a claim, its line's name, its family of effects and what selects them."""


def numbers(results: Results) -> dict[str, object]:
    """Numbers that the caption quotes: least and largest over layers, by value path."""
    every = list(layers(results))

    def extremes(of: Callable[[Layer], float]) -> dict[str, list[float]]:
        found = {values: [of(one) for one in every if one.values == values]
                 for values in results.settings["values"]}  # fmt: skip
        return {values: [min(own), max(own)] for values, own in found.items()}

    def share_rising(layer: Layer) -> float:
        index = INDICES["subspaces"](results, layer)
        return float((index[..., -1] > index[..., 0]).mean())

    return {
        "seeds": min(results.replicates_at(name) for name in results.points),
        "gains": extremes(lambda x: float(1 - along(results, x)[:, -1].mean())),
        "beyond": extremes(lambda x: float(beyond_identical(results, x).mean())),
        "rising": min(
            float((np.diff(INDICES["subspaces"](results, x)[..., [0, -1]]) > 0).mean())
            for x in every
        ),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    drawing, axes = figures.panels(
        width=figures.PAGE, height=8.4,
        title="Trained heads part, but most of the gain is within reach of identical heads",
    )  # fmt: skip
    axes[0, 0].remove()
    upper, lower = cast(Sequence[SubFigure], drawing.subfigures(2, 1, height_ratios=(1.0, 2.6)))
    top = upper.subplots(1, 4, sharey="row")
    panels = [(index, values) for index in ("subspaces", "errors") for values in VALUES.values()]
    for ax, (index, values) in zip(top, panels, strict=True):
        path(ax, results, index, values)
        ax.set(
            xlabel=f"index of {index}",
            ylabel="",
            title="pooled heads" if values == "pool" else "free heads",
        )
    top[0].set_ylabel("error / error at the start")
    below = lower.subplots(2, 2, height_ratios=(2.2, 1.0))
    shares: list[Row] = [
        (f"{regime}, {number} {value} heads", f"{name}, {count} {value}", f"share of {name}",
         {"values": trained, "heads": count})
        for regime, name in SHARES.items()
        for value, trained in VALUES.items()
        for number, count in NUMBERS.items()
    ]  # fmt: skip
    beyond = ("beyond identical", "share beyond identical heads")
    shares += by_values({"gain beyond identical heads": beyond})
    for ax, rows, axis in (
        (below[0, 0], shares, "share of the gain"),
        (below[0, 1], by_values(RISES), "rise of the index, or fall of the error\nby parting"),
        (below[1, 0], by_values(PATHS), "−rank correlation of error and index\nalong the path"),
        (below[1, 1], by_values(ACROSS), "−correlation of error and index\nacross trained layers"),
    ):
        forest(ax, results, verdicts, rows)
        ax.set_xlabel(axis)
    figures.letters([*top, *below.flat])
    return drawing


def by_values(table: dict[str, tuple[str, str]]) -> list[Row]:
    """Rows of claims that are made once for each value path."""
    return [
        (f"{regime}, {value}", f"{name}, {value}", family, {"values": trained})
        for regime, (name, family) in table.items()
        for value, trained in VALUES.items()
    ]


def forest(ax: Axes, results: Results, verdicts: Sequence[Verdict], rows: Sequence[Row]) -> None:
    """Every claim a line: its effects, margin and verdict."""
    families = effects(results)
    found = {verdict.regime: verdict for verdict in verdicts}

    def chosen(family: str, at: dict[str, str | int]) -> list[Effect]:
        return [e for e in families[family] if all(e.at[k] == v for k, v in at.items())]

    frame = pd.DataFrame(
        [(name, e.value, e.error) for _, name, family, at in rows for e in chosen(family, at)],
        columns=["label", "value", "error"],
    )
    frame["label"] = pd.Categorical(frame["label"], [name for _, name, _, _ in rows])
    known = {name: found[regime] for regime, name, _, _ in rows if regime in found}
    figures.forest(
        ax, frame, percent=False, verdict=known,
        margin={name: (verdict.margin, np.inf) for name, verdict in known.items()},
    )  # fmt: skip


def path(ax: Axes, results: Results, index: str, values: str) -> None:
    """Means over seeds of error and index at the steps looked at, joined in their order."""
    own = [one for one in layers(results) if (one.stream, one.values) == ("additive", values)]
    for one, color, marker in zip(own, figures.PALETTE, figures.MARKERS, strict=False):
        x, relative = INDICES[index](results, one).mean((0, 1)), along(results, one)
        ax.plot(x, relative.mean(0), color=color, lw=0.7)
        figures.simulated(ax, x, relative.mean(0), mcse(relative), color, marker,
                          label=f"{one.heads} of {one.width}")  # fmt: skip
    if values == "pool" and index == "subspaces":
        ax.legend(frameon=False, fontsize=6, title="H of d_k", title_fontsize=6)


def along(results: Results, layer: Layer) -> np.ndarray:
    """The error over that at the start, at every step looked at: pseudo-values (B, C)."""
    errors = error(results, layer).mean(1)
    return np.stack([ratio(at_step, errors[:, 0]) for at_step in errors.T], axis=1)
