"""Correlation of pairs against the angle, where it decides and where not; the law on 1 − ρ."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import jackknife, mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    AXES,
    COORDINATES,
    CUBE,
    SLOPED,
    TARGETS,
    Heads,
    correlation,
    effects,
    facts,
    heads_of,
    lines,
    parts_of,
)

KERNELS = ("gaussian", "softmax")


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    families = effects(results)
    rho = {
        f"{name}_{kernel}": mean_and_error(
            simulated(results, point, heads_of(results, point, pair))
        )[0]
        for kernel in KERNELS
        for point in (place(results, SLOPED, kernel, "common"),)
        for name, pair in (("along", AXES), ("between", COORDINATES))
    }
    cube = {
        (e.at["kernel"], e.at["bandwidth"]): 1 / (1 + e.value) - 1
        for e in families["decorrelation at one principal angle"]
        if e.at["keys"] == CUBE
    }
    total = [abs(e.value) for e in families["total correlation"] if e.at["kernel"] == "gaussian"]
    return rho | {
        "queries": results.problems[place(results, SLOPED)]["queries"]["count"],
        "cube": cube["gaussian", 0.5],
        "narrow": cube["gaussian", 0.2],
        "total": max(total),
        "problems": min(results.batches(name) for name in by_law(results)),
    }


def place(results: Results, keys: str, kernel: str | None = None, unit: str | None = None) -> str:
    """The first point of these keys, kernel and unit."""
    found = {name: facts(results, name) for name in results.points}
    return next(
        name
        for name, at in found.items()
        if at["keys"] == keys and kernel in (None, at["kernel"]) and unit in (None, at["unit"])
    )


def by_law(results: Results) -> list[str]:
    """The populations that are held against the law."""
    return [name for name in results.points if "law" in results.predictions[name]]


def simulated(
    results: Results, name: str, pair: Heads, parts: Sequence[str] = ("noise",)
) -> np.ndarray:
    """Pseudo-values of a pair's correlation."""
    return jackknife(parts_of(results, name, pair, parts), correlation)


def predicted(results: Results, name: str, pair: Heads, parts: Sequence[str] = ("noise",)) -> float:
    """A pair's correlation by first-order theory."""
    theory = results.predictions[name]
    if "order" in theory.dims:
        theory = theory.isel(order=0)
    whole = np.sum([theory[f"integrated_{part}_covariance"].values for part in parts], axis=0)
    first, second = pair
    return float(2 * whole[first, second] / (whole[first, first] + whole[second, second]))


def opening(first: float, second: float) -> float:
    """Principal angle of two lines, in degrees."""
    gap = abs(first - second) % 180
    return min(gap, 180 - gap)


def all_pairs(results: Results, kernel: str) -> pd.DataFrame:
    """Every pair of lines in keys N(0, Σ), with bandwidths of one's own and with one for all."""
    rows = []
    for unit, label in (("own", "own units"), ("common", "one for all")):
        name = place(results, SLOPED, kernel, unit)
        shift = {"own": -0.6, "common": 0.6}[unit]
        at = lines(results, name)
        for first, second in combinations(range(len(at)), 2):
            found = mean_and_error(simulated(results, name, (first, second)))
            rows.append((label, opening(at[first], at[second]) + shift, *found))
    return pd.DataFrame(rows, columns=["bandwidth", "angle", "simulation", "mcse"])


def sided(results: Results, kernel: str) -> pd.DataFrame:
    """Signal and noise of pairs about the direction of the targets and across it."""
    name = next(
        n
        for n in results.points
        if facts(results, n)["population"] == TARGETS and facts(results, n)["kernel"] == kernel
    )
    words = ("about it", "across it", "turned")
    pairs: dict[int, list[Heads]] = {}
    for two in results.settings["sided"]:
        first, second = (tuple(two[side]) for side in ("first", "second"))
        pairs.setdefault(int(two["angle"]), [first]).append(second)
    rows = []
    for what, parts in (("all", ("signal", "noise")), ("label noise", ("noise",))):
        for angle, three in pairs.items():
            for where, pair in zip(words, three, strict=True):
                found = mean_and_error(simulated(results, name, pair, parts))
                theory = predicted(results, name, pair, parts)
                rows.append((f"{what}, {angle}°", where, *found, theory))
    return pd.DataFrame(rows, columns=["of", "pair", "simulation", "mcse", "theory"])


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {verdict.regime: verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        2,
        3,
        height=4.6,
        title="An orthogonal pair has the least correlation, but angles alone do not say which",
    )
    for ax, kernel, regimes in zip(
        axes[:, 0],
        KERNELS,
        (("own bandwidths", "one bandwidth"), ("own temperatures", "one temperature")),
        strict=True,
    ):
        own = {
            label: claims[f"best pair, keys N(0, Σ), {kernel}, {regime}"]
            for label, regime in zip(("own units", "one for all"), regimes, strict=True)
        }
        points(ax, all_pairs(results, kernel), own, kernel)
    for ax, kernel in zip(axes[:, 1], KERNELS, strict=True):
        figures.curve(
            ax,
            sided(results, kernel),
            None,
            "pair",
            "correlation",
            hue="of",
            labels={"loc": "upper left", "ncols": 2} if kernel == "gaussian" else None,
        )
        low, high = ax.get_ylim()
        ax.set(title=f"one direction, {kernel}", ylim=(low, high + 0.45 * (high - low)))
    for ax, kernel in zip(axes[:, 2], KERNELS, strict=True):
        law(results, claims[f"decorrelation, {kernel} kernel"], kernel, ax)
    figures.letters(axes.flat)
    return drawing


def points(ax: Axes, frame: pd.DataFrame, verdict: dict[str, Verdict], kernel: str) -> None:
    """All pairs of lines against their principal angle."""
    figures.curve(
        ax,
        frame,
        frame.assign(theory=np.nan),
        "angle",
        "noise correlation",
        hue="bandwidth",
        verdict=verdict,
        labels={"loc": "lower left", "title": "bandwidth"},
    )
    ax.set(xlabel="principal angle θ (degrees)", xlim=(0, 95), title=f"all pairs, {kernel}")
    ax.set_ylim(1.02 - 1.9 * (1.02 - frame["simulation"].min()), 1.02)
    figures.ticks(ax.xaxis, (0, 30, 60, 90))


def law(results: Results, verdict: Verdict, kernel: str, ax: Axes) -> None:
    """1 − ρ by simulation and by the law, and the linear alternative dashed."""
    rows, dashed = [], []
    for name in by_law(results):
        if facts(results, name)["kernel"] != kernel:
            continue
        theory, width = results.predictions[name], results.problems[name]["heads"]["width"]
        start, *others = lines(results, name)
        for line, value in zip(others, theory["law"].values, strict=True):
            found = mean_and_error(
                1 - simulated(results, name, heads_of(results, name, (start, line)))
            )
            rows.append((int(width), line, *found, 1 - float(value)))
        dashed.append((others, 1 - theory["linear"].values))
    frame = pd.DataFrame(rows, columns=["width", "angle", "simulation", "mcse", "theory"])
    figures.curve(
        ax,
        frame,
        None,
        "angle",
        "decorrelation 1 − ρ",
        hue="width",
        margin=verdict.margin,
        verdict=verdict,
        labels={"loc": "lower right", "title": "$d_k$"},
    )
    for angles, values in dashed:
        figures.reference(ax, values, "", x=angles)
    ax.set(xlabel="principal angle θ (degrees)", xlim=(5, 95), title=f"{kernel}")
    figures.ticks(ax.xaxis, (0, 30, 60, 90))
