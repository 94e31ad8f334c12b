"""Error against index along the path of training, and what the gain is made of."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.diversity import mean_index
from sims.effects import Effect
from sims.estimates import mcse, ratio
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    INDICES,
    Layer,
    after,
    beyond_identical,
    effects,
    error,
    layers,
    separately_trained,
)

VALUES = {"pooled": "pool", "free": "free"}
NUMBERS = {"two": 2, "four": 4}
SHARES = {
    "covariance explains the gain": "covariance",
    "ambiguity explains the gain": "ambiguity",
    "the index of errors explains the gain": "index of errors",
}
"""Regime of the claims of each reading to the reading, of whose share they are."""
RISES = {
    "subspaces part": ("subspaces", "rise of subspaces"),
    "maps part": ("both maps", "rise of maps"),
    "outputs decorrelate": ("outputs", "rise of outputs"),
    "errors decorrelate": ("errors", "rise of errors"),
    "better than identical heads": ("fall of the error", "better than identical heads"),
}
VARIANCE = {"less variance than identical heads": ("", "less variance than identical heads")}
AGAINST_SEPARATE = {
    "joint training parts heads further": "subspaces",
    "joint training parts maps further": "both maps",
    "joint training decorrelates errors further": "errors' correlation",
    "joint training lowers the error further": "fall of the error",
}
"""Families of joint against separate training to the name of what it changes."""
PATHS = {
    "error against subspaces along the path": ("subspaces", "falls with subspaces along the path"),
    "error against maps along the path": ("both maps", "falls with maps along the path"),
    "error against outputs along the path": ("outputs", "falls with outputs along the path"),
    "error against errors along the path": ("errors", "falls with errors along the path"),
}
ACROSS = {
    "error against subspaces across seeds": ("subspaces", "falls with subspaces across seeds"),
    "error against maps across seeds": ("both maps", "falls with maps across seeds"),
    "error against errors across seeds": ("errors", "falls with errors across seeds"),
}
OUTPUTS = "error against outputs across seeds"
OF_OUTPUTS: dict[str, dict[str, str | int]] = {
    "pooled": {"values": "pool"},
    "two free heads": {"values": "free", "heads": 2},
    "four free heads": {"values": "free", "heads": 4},
}
"""Claims of the index of outputs across trained layers to what selects their effects."""

Row = tuple[str, str, str, str, dict[str, str | int]]
"""Regime of a claim, its line's group and name, its family of effects and what selects them."""


def numbers(results: Results) -> dict[str, object]:
    """Numbers that the caption quotes: least and largest over layers, by value path."""
    every = list(layers(results))

    def extremes(of: Callable[[Layer], float]) -> dict[str, list[float]]:
        found = {
            values: [of(one) for one in every if one.values == values]
            for values in results.settings["values"]
        }
        return {values: [min(own), max(own)] for values, own in found.items()}

    def share_rising(layer: Layer) -> float:
        index = INDICES["subspaces"](results, layer)
        return float((index[..., -1] > index[..., 0]).mean())

    controlled = list(separately_trained(results))
    ends = [[mean_index(m).mean() for m in after(results, x, "subspaces")] for x in controlled]
    return {
        "separate": {
            "start": float(INDICES["subspaces"](results, controlled[0])[..., 0].mean()),
            "joint": [float(one[0]) for one in ends],
            "apart": [float(one[1]) for one in ends],
        },
        "seeds": min(results.replicates_at(name) for name in results.points),
        "gains": extremes(lambda x: float(1 - along(results, x)[:, -1].mean())),
        "beyond": extremes(lambda x: float(beyond_identical(results, x).mean())),
        "rising": min(
            float((np.diff(INDICES["subspaces"](results, x)[..., [0, -1]]) > 0).mean())
            for x in every
        ),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    drawing, axes = figures.mosaic(
        ("abcd", "eeff", "eegg", "eehh", "eeii"),
        height=11.4,
        heights=(2.1, 4.0, 0.6, 2.2, 2.5),
        title="Trained heads part, but most of the gain is within reach of identical heads",
    )
    paths = [(index, values) for index in ("subspaces", "errors") for values in VALUES.values()]
    for ax, (index, values) in zip((axes[k] for k in "abcd"), paths, strict=True):
        if ax is not axes["a"]:
            ax.sharey(axes["a"])
        path(ax, results, index, values)
        ax.set(
            xlabel=f"index of {index}",
            ylabel="",
            title="pooled heads" if values == "pool" else "free heads",
        )
    axes["a"].set_ylabel("error / error at the start")
    shares: list[Row] = [
        (
            f"{regime}, {number} {value} heads",
            name,
            f"{number} {value} heads",
            f"share of {name}",
            {"values": trained, "heads": count},
        )
        for regime, name in SHARES.items()
        for value, trained in VALUES.items()
        for number, count in NUMBERS.items()
    ]
    beyond = ("beyond identical heads", "share beyond identical heads")
    shares += by_values({"gain beyond identical heads": beyond})
    against: list[Row] = [
        (f"{family}, four pooled heads", "joint against separate training", name, family, {})
        for family, name in AGAINST_SEPARATE.items()
    ]
    outputs: list[Row] = [
        (f"{OUTPUTS}, {name}", "outputs", name, "falls with outputs across seeds", at)
        for name, at in OF_OUTPUTS.items()
    ]
    for letter, rows, axis in (
        ("e", shares, "share of the gain"),
        ("f", by_values(RISES) + against, "rise of the index, fall of the error"),
        ("g", by_values(VARIANCE), "fall of the variance"),
        ("h", by_values(PATHS), "−rank correlation of error and index along the path"),
        ("i", by_values(ACROSS) + outputs, "−correlation of error and index across trained layers"),
    ):
        forest(axes[letter], results, verdicts, rows)
        axes[letter].set_xlabel(axis)
    figures.letters(axes[letter] for letter in sorted(axes))
    return drawing


def by_values(table: dict[str, tuple[str, str]]) -> list[Row]:
    """Rows of claims that are made once for each value path."""
    return [
        (f"{regime}, {value}", name, f"{value} heads", family, {"values": trained})
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
        [
            (group, name, e.value, e.error)
            for _, group, name, family, at in rows
            for e in chosen(family, at)
        ],
        columns=["group", "label", "value", "error"],
    )
    known = {(group, name): found[regime] for regime, group, name, *_ in rows if regime in found}
    figures.forest(
        ax,
        frame,
        percent=False,
        verdict=known,
        margin={line: (verdict.margin, np.inf) for line, verdict in known.items()},
    )


def path(ax: Axes, results: Results, index: str, values: str) -> None:
    """Means over seeds of error and index at the steps looked at, joined in their order."""
    own = [one for one in layers(results) if (one.stream, one.values) == ("additive", values)]
    for one, color, marker in zip(own, figures.PALETTE, figures.MARKERS, strict=False):
        x, relative = INDICES[index](results, one).mean((0, 1)), along(results, one)
        ax.plot(x, relative.mean(0), color=color, lw=0.9)
        figures.simulated(
            ax,
            x,
            relative.mean(0),
            mcse(relative),
            color,
            marker,
            label=f"{one.heads} heads, $d_k$ = {one.width}",
        )
    if values == "pool" and index == "subspaces":
        ax.legend()


def along(results: Results, layer: Layer) -> np.ndarray:
    """The error over that at the start, at every step looked at: pseudo-values (B, C)."""
    errors = error(results, layer).mean(1)
    return np.stack([ratio(at_step, errors[:, 0]) for at_step in errors.T], axis=1)
