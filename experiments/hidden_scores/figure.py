"""Collapse with and without memory, uniformity by depth, and the second layer's error."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.effects import Effect
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import effects, part

SHOWN = ("pure, Gaussian β=1", "pure, semidefinite β=4")
"""Stacks whose collapse is drawn."""
LEAST = -340.0
"""log ρ down to which it is drawn."""
DRAWN = (0.0, 0.5, 0.9)
"""Memories of the left panels."""


def numbers(results: Results) -> dict[str, float | str]:
    """Numbers and cases that the caption quotes."""
    families = effects(results)
    late = [abs(effect.value) for effect in families["late slope over plain"]]
    zero, copy = (
        [e.value for e in families["spread kept"] if e.at["start"] == start and e.at["depth"] == 24]
        for start in ("zero", "copy")
    )
    return {
        "late": max(late),
        "zero_least": min(zero), "zero_most": max(zero),
        "copy_least": min(copy), "copy_most": max(copy),
        "old": case(families["rise, old"][0]), "values": case(families["rise, values"][0]),
        "below": case(families["below plain, zero"][0]),
    }  # fmt: skip


def case(effect: Effect) -> str:
    """The case that a search ended at."""
    return effect.label.removeprefix("smallest: ").split(" ", 1)[1]


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    del verdicts  # they are too many to be told apart in the panels: the caption has them
    drawing, axes = figures.panels(
        2, 2, height=5.6,
        title="Memory slows collapse in depth; whether it keeps tokens apart hangs on its start",
    )  # fmt: skip
    for ax, point in zip(axes[0], SHOWN, strict=True):
        collapse(ax, results, point)
    axes[0, 0].set_title("no skip, Gaussian scores, β = 1")
    axes[0, 1].set_title("no skip, semidefinite scores, β = 4")
    uniformity(axes[1, 0], results)
    rows = [
        (f"{e.label.split(', ')[0]}, {e.label.split(', ')[1]}, {e.label.split(', ')[2]}",
         e.value, e.error)
        for e in effects(results)["error saved"]
        if not (e.at["view"] == "same view" and e.at["start"] == "copy")
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["label", "value", "error"])
    figures.forest(axes[1, 1], frame, percent=True, margin=(0.005, np.inf))
    axes[1, 1].set(xlabel="error saved (%)", title="heads of a second layer")
    figures.letters(axes.flat)
    return drawing


def collapse(ax: Axes, results: Results, point: str) -> None:
    """log ρ by layer for some memories and both starts."""
    data = results.estimates[point]
    rows = [
        ("plain" if memory == 0 else f"α′ = {memory}, {start}", layer + 1, value, error)
        for memory in DRAWN for start in ("zero", "copy") if memory > 0 or start == "zero"
        for layer, (value, error) in enumerate(zip(
            data["log_residual"].sel(start=start, memory=memory).mean("batch").values / np.log(10),
            data["log_residual_mcse"].sel(start=start, memory=memory).values / np.log(10),
            strict=True,
        ))
        if value * np.log(10) > LEAST
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["arm", "layer", "log10 ρ", "mcse"])
    figures.curve(ax, frame, None, "layer", "log10 ρ", error="mcse", hue="arm", labels="key")


def uniformity(ax: Axes, results: Results) -> None:
    """ω of plain attention less that with memory, after 24 layers, by memory."""
    rows = []
    for point in part(results, "normed"):
        own = results.coordinates[point]
        if results.number(point, "score_scale") != 1 or own["weights"] != "tied":
            continue
        data = results.estimates[point]["log_odds"].isel(layer=-1)
        for start in ("zero", "copy"):
            plain = data.sel(start=start).isel(memory=0)
            for memory in data["memory"].values[1:]:
                gain = (plain - data.sel(start=start, memory=memory)).values
                name = f"{start}, {own['matrix']}"
                error = gain.std(ddof=1) / len(gain) ** 0.5
                rows.append((name, float(memory), gain.mean(), error))
    frame = pd.DataFrame(rows, columns=["stack", "α′", "ω saved", "mcse"])
    figures.curve(
        ax, frame, None, "α′", "ω saved", error="mcse", hue="stack", labels={"loc": "lower left"}
    )
    ax.set(title="skip ½, norm, tied weights, 24 layers, β = 1")
    ax.axhline(0, color=figures.GREY, lw=0.8, zorder=1)
