"""Collapse with and without memory, uniformity by depth, and the second layer's error."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.effects import Effect
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import regression, searches
from .effects import uniformity as of_uniformity

HIGHER = "hidden-collapse"
SHOWN = {
    "pure, Gaussian β=1": (
        "no skip, Gaussian scores, β = 1",
        {
            "zero": (HIGHER, "zero start, Gaussian scores"),
            "copy": (HIGHER, "copy, Gaussian scores"),
        },
    ),
    "pure, semidefinite β=4": (
        "no skip, semidefinite scores, β = 4",
        {"zero": (HIGHER, "zero start, semidefinite scores")},
    ),
}
"""Stacks whose collapse is drawn: title, and the claims by start, "a larger residual than plain
attention after 6 and 12 layers", that are about this stack."""
STARTS = {"zero": "from zero", "copy": "by copying"}
"""How the memory starts."""
NONE = "no memory (plain)"
LEVELS_OFF = "normed, independent Gaussian β=4"
"""The stack whose uniformity is drawn: of those with new weights a layer, the one most moved."""
LEAST = -340.0
"""log ρ down to which it is drawn."""
ARMS = [(NONE, "zero", 0.0)] + [
    (f"α′ = {memory}, {words}", start, memory)
    for memory in (0.5, 0.9)
    for start, words in STARTS.items()
]
"""Label, start and memory of the curves by layer, in the same colours everywhere."""


def numbers(results: Results) -> dict[str, float | str]:
    """Numbers and cases that the caption quotes."""
    families = of_uniformity(results) | searches(results)
    late = [abs(effect.value) for effect in families["late slope over plain"]]
    zero, copy = (
        [e.value for e in families["spread kept"] if e.at["start"] == start and e.at["depth"] == 24]
        for start in ("zero", "copy")
    )
    return {
        "late": max(late),
        "zero_least": min(zero),
        "zero_most": max(zero),
        "copy_least": min(copy),
        "copy_most": max(copy),
        "old": case(families["rise, old"][0]),
        "values": case(families["rise, values"][0]),
        "below": case(families["below plain, zero"][0]),
    }


def case(effect: Effect) -> str:
    """The case that a search ended at."""
    return effect.label.removeprefix("smallest: ").split(" ", 1)[1]


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    drawing, axes = figures.mosaic(
        ("ab", "cd"),
        height=5.4,
        title="Memory slows collapse in depth; whether it keeps tokens apart hangs on its start",
    )
    for letter, (point, (title, judged)) in zip("ab", SHOWN.items(), strict=True):
        collapse(axes[letter], results, point, {k: claims[at] for k, at in judged.items()})
        axes[letter].set_title(title)
    uniformity(axes["c"], results)
    saved(axes["d"], results, claims)
    figures.letters(axes[letter] for letter in sorted(axes))
    return drawing


def collapse(ax: Axes, results: Results, point: str, judged: dict[str, Verdict]) -> None:
    """log ρ by layer for some memories and both starts; a sign where the start was judged."""
    data = results.estimates[point]
    rows = [
        (name, layer + 1, value, error)
        for name, start, memory in ARMS
        for layer, (value, error) in enumerate(
            zip(
                data["log_residual"].sel(start=start, memory=memory).mean("batch").values
                / np.log(10),
                data["log_residual_mcse"].sel(start=start, memory=memory).values / np.log(10),
                strict=True,
            )
        )
        if value * np.log(10) > LEAST
    ]
    frame = pd.DataFrame(rows, columns=["arm", "layer", "log ρ", "mcse"])
    own = {
        arm: judged[start]
        for arm in frame["arm"].unique()
        for start, words in STARTS.items()
        if start in judged and arm.endswith(words)
    }
    figures.curve(
        ax,
        frame,
        None,
        "layer",
        "log ρ",
        hue="arm",
        verdict=own,
    )
    ax.set_ylabel("log₁₀ of the relative residual ρ")


def uniformity(ax: Axes, results: Results) -> None:
    """ω of plain attention less that with memory, by layer, for some memories and both starts."""
    data = results.estimates[LEVELS_OFF]["log_odds"]
    rows = []
    for name, start, memory in ARMS:
        own = data.sel(start=start)
        gain = (own.sel(memory=0.0) - own.sel(memory=memory)).values
        for layer, values in enumerate(gain.T):
            rows.append((name, layer + 1, *mean_and_error(values)))
    frame = pd.DataFrame(rows, columns=["arm", "layer", "ω saved", "mcse"])
    figures.curve(ax, frame, None, "layer", "ω saved", hue="arm", labels=None)
    ax.set(
        title="skip ½, norm, new Gaussian weights a layer, β = 4",
        ylabel="log-odds ω without memory − with it",
    )


def saved(ax: Axes, results: Results, claims: dict[tuple[str, str], Verdict]) -> None:
    """Share of the second layer's error that memory saves, a line a kernel and start."""
    rows: list[tuple[str, str, float, float]] = []
    own: dict[str | tuple[str, str], Verdict] = {}
    for effect in regression(results)["error saved"]:
        view, kernel, start = (str(effect.at[k]) for k in ("view", "kernel", "start"))
        if view == "same view" and start == "copy":
            continue
        group, line = f"first layer: {view}", f"{kernel}, {STARTS[start]}"
        rows.append((group, line, effect.value, effect.error))
        both = claims["hidden-regression", f"{view}, {kernel}"]
        own[group, line] = claims.get(("hidden-regression", f"{view}, {kernel}, {start}"), both)
    margin = next(iter(own.values())).margin
    frame = pd.DataFrame(rows, columns=["group", "label", "value", "error"])
    figures.forest(
        ax,
        frame,
        verdict=own,
        margin=dict.fromkeys(zip(frame["group"], frame["label"], strict=True), (margin, np.inf)),
    )
    ax.set(xlabel="error that memory saves (%)", title="heads of a second layer")
