"""Noise correlation and variance kept against the angle between heads' subspaces."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.effects import Effect
from sims.estimates import Batches, mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import (
    ANGLE,
    angle_of,
    averaged,
    canonical_of,
    correlated,
    curves,
    effects,
    noise_correlation,
    query_error,
    random,
    variance_kept,
)


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    many = averaged(results)
    random_frames = random(results)
    found = [mean_and_error(results.pseudovalues(name, noise_correlation)) for name in many]
    first = [results.prediction(name) for name in many]
    return {
        "query_error": max(query_error(data) / float(data["law"]) for data in first),
        "mcse": max(error / value for value, error in found),
        "problems": min(results.batches(name) for name in random_frames),
        "queries": results.problems[many[0]]["queries"]["count"],
        "least_keys": min(float(data["n_eff"].mean()) for data in first),
    }


def table(
    results: Results, points: Iterable[str], order: str, of: Callable[[Batches], np.ndarray]
) -> pd.DataFrame:
    """A statistic at these points by simulation, with its MCSE, and by theory of that order."""
    rows = []
    for name in points:
        theory = results.prediction(name, order)
        predicted = of({str(k): v.values for k, v in theory.items()})
        at = (int(results.number(name, path)) for path in ("heads.width", ANGLE))
        rows.append((*at, *mean_and_error(results.pseudovalues(name, of)), predicted))
    return pd.DataFrame(rows, columns=["width", "angle", "simulation", "mcse", "theory"])


def tilted(results: Results, kernel: str, width: int | None = None) -> pd.DataFrame:
    """Pairs in keys N(0, Σ): noise correlation by simulation and by the law.

    The orthogonal pair stands at 45° to both axes of Σ, hence in a row of either.
    """
    rows = []
    for (own, d_k), names in correlated(results).items():
        if own != kernel or width not in (None, d_k):
            continue
        for name in names:
            found = mean_and_error(results.pseudovalues(name, noise_correlation))
            law = float(results.prediction(name)["law"])
            label = str(results.coordinates[name]["heads.frames"])
            rows += [
                (axis, int(d_k), angle_of(results, name), canonical_of(results, name), *found, law)
                for axis in ("major", "minor")
                if axis in label or "either" in label
            ]
    columns = ["axis", "width", "angle", "canonical", "simulation", "mcse", "theory"]
    return pd.DataFrame(rows, columns=columns)


def gaps(family: Sequence[Effect], x: str) -> pd.DataFrame:
    """Relative gaps to theory, along a fact of theirs; d_k = 1 and 2 stand side by side."""
    rows = [
        (e.at["kernel"], float(e.at[x]) + 0.02 * (float(e.at["width"]) - 1.5), 1 + e.value, e.error)
        for e in family
    ]
    return pd.DataFrame(rows, columns=["kernel", x, "simulation", "mcse"]).assign(theory=1.0)


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {verdict.regime: verdict for verdict in verdicts}
    settings: dict[tuple[str, float], list[list[str]]] = {}
    for (kernel, bandwidth, _), points in curves(results).items():
        settings.setdefault((kernel, bandwidth), []).append(points)
    drawing, axes = figures.panels(
        3,
        3,
        height=6.8,
        title="Angles between heads, as keys measure them, govern how much their errors share",
    )
    for ax, ((kernel, bandwidth), lines) in zip(axes[0], settings.items(), strict=True):
        claim = claims[f"{kernel} kernel"]
        laws = [
            results.prediction(line[0])["law_curve"]
            .to_dataframe("theory")
            .reset_index()
            .assign(width=int(results.number(line[0], "heads.width")))
            for line in lines
        ]
        figures.curve(
            ax,
            table(results, chain(*lines), "first", noise_correlation),
            pd.concat(laws).rename(columns={"curve_angle": "angle"}),
            "angle",
            "noise correlation",
            hue="width",
            margin=claim.margin,
            verdict=claim,
            labels={"loc": "lower left", "title": "$d_k$"} if ax is axes[0, 1] else None,
        )
        at = f"$b$ = {bandwidth:g}" if kernel == "gaussian" else f"$s$ = {bandwidth**2:.2g}"
        ax.set_title(f"{kernel}, {at}")
    families = effects(results)
    for ax, family, x, regime in (
        (axes[1, 0], "gap to the law, drawn", "overlap", "{} kernel, everything drawn"),
        (axes[1, 1], "gap to exact theory", "width", "{} kernel, exact"),
    ):
        own = {kernel: claims[regime.format(kernel)] for kernel in ("gaussian", "softmax")}
        figures.gap(
            ax,
            gaps(families[family], x),
            x,
            hue="kernel",
            margin=own["gaussian"].margin,
            verdict=own,
            log="",
            labels={"loc": "upper left"} if x == "overlap" else None,
        )
    axes[1, 0].set(title="random angles, law", xlabel="mean cos² of the principal angles")
    axes[1, 1].set(title="few keys, exact", xlabel="head width $d_k$", xlim=(0.5, 2.5))
    figures.ticks(axes[1, 1].xaxis, (1, 2))
    kept = table(results, chain(*next(iter(settings.values()))), "first", variance_kept)
    last = axes[1, 2]
    figures.curve(
        last,
        kept,
        None,
        "angle",
        "share of variance kept",
        hue="width",
        labels=None,
        verdict=claims["total variance, one fixed target"],
    )
    last.set_title("signal and noise")
    heads = results.problems[averaged(results)[0]]["heads"]["count"]
    figures.reference(last, 1 / heads, "independent: 1/$H$")
    for ax in (*axes[0], last):
        ax.set(xlabel="principal angle θ (degrees)", xlim=(-5, 98))
        figures.ticks(ax.xaxis, range(0, 91, 30))
        ax.set_ylim(0, 1.08)
    correlated_keys(results, claims, axes[2])
    figures.letters(axes.flat)
    return drawing


def correlated_keys(results: Results, claims: Mapping[str, Verdict], axes: Sequence[Axes]) -> None:
    """Keys N(0, Σ): against the principal angle, where pairs differ, and the canonical one."""
    for ax, kernel in zip(axes[:2], ("gaussian", "softmax"), strict=True):
        figures.curve(
            ax,
            tilted(results, kernel, 1),
            None,
            "angle",
            "noise correlation",
            hue="axis",
            verdict=claims[f"{kernel} kernel, keys N(0, Σ)"],
            labels={"loc": "lower left", "title": "about the axis"} if ax is axes[0] else None,
        )
        ax.set(xlabel="principal angle θ (degrees)", xlim=(15, 98), title=f"{kernel}, Σ")
        figures.ticks(ax.xaxis, (30, 60, 90))
    claim = claims["gaussian kernel, canonical correlations"]
    figures.curve(
        axes[2],
        tilted(results, "gaussian").drop_duplicates(["width", "canonical"]),
        None,
        "canonical",
        "noise correlation",
        hue="width",
        margin=claim.margin,
        verdict=claim,
        labels={"loc": "upper left", "title": "$d_k$"},
    )
    axes[2].set(xlabel="canonical correlation", title="gaussian, Σ", xlim=(-0.05, 1.05))
    for ax in axes:
        ax.set_ylim(0, 1.08)
