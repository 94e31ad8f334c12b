"""Claims `angles` and `extremes`; the figure: noise correlation and variance kept against θ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sims.results import Results, common, mean_and_error

from sims import figures
from sims.judgement import Evidence, Verdict, claim, equivalence, identity, ordering

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KERNEL, WIDTH = "heads.kernel", "heads.width"
ANGLE, BANDWIDTH = "heads.frames.angle", "heads.bandwidth"
FEW = "queries.count"
"""Coordinate of the points that exact theory covers."""
QUERIES_ALONE = 0.9
"""Share of the variance from which on the queries' error is taken for all of it."""
Terms = Mapping[str, np.ndarray]


def noise_correlation(terms: Terms) -> np.ndarray:
    """Of two heads: a ratio of averages over queries, as the law is."""
    return terms["cross_noise_covariance"] / terms["noise_variance"]


def variance_kept(terms: Terms) -> np.ndarray:
    """Share of a head's variance that the ensemble keeps."""
    return terms["ensemble_variance"] / terms["variance"]


def judge(results: Results, experiment: Any) -> list[Verdict]:
    table = _table(results)
    verdicts = []
    for kernel in ("gaussian", "softmax"):
        rows = table[table[KERNEL] == kernel]
        wanted = claim(experiment, "angles", f"{kernel} kernel")
        # Aligned heads are one head: their correlation is 1 in every draw and at every query.
        aligned = _aligned(rows)
        error = np.where(aligned, 0.0, np.hypot(rows["correlation_mcse"], rows["query_error"]))
        # Where nearly all variance is that of the queries, whose number was fixed beforehand: t
        # intervals with their freedom, and replicates do not help.
        own = (rows["query_error"] ** 2 >= QUERIES_ALONE * error**2).to_numpy() & ~aligned
        counts = np.where(own, rows["queries"], rows["batches"])
        evidence = Evidence(
            (rows["correlation"] / rows["law"] - 1).to_numpy(),
            error / rows["law"],
            np.where(aligned, np.inf, counts),
            results.replicates,
            tuple(() if q else (name,) for q, name in zip(own, rows["name"], strict=True)),
            own,
        )
        finding = equivalence(evidence, margin=wanted.margin, level=wanted.level)
        # Part of the error is that of the queries, which more replicates alone do not lower.
        words = finding.reason.replace("replicates would", "replicates on more queries would")
        finding = replace(finding, reason=words)
        verdicts.append(Verdict.of(wanted, results.experiment, finding))

        rows = _exact(results, kernel)
        wanted = claim(experiment, "angles", f"{kernel} kernel, exact")
        evidence = Evidence(
            (rows["correlation"] / rows["exact"] - 1).to_numpy(),
            (rows["correlation_mcse"] / rows["exact"]).to_numpy(),
            rows["batches"].to_numpy(),
            results.replicates,
            tuple((name,) for name in rows["name"]),
            bounds=rows["bound"].to_numpy(),
        )
        finding = equivalence(evidence, margin=wanted.margin, level=wanted.level)
        verdicts.append(Verdict.of(wanted, results.experiment, finding))

    wanted = claim(experiment, "extremes", "aligned heads")
    finding = identity(
        table["kept"][_aligned(table)] - 1,
        margin=wanted.margin,
        level=wanted.level,
        replicates=results.replicates,
    )
    verdicts.append(Verdict.of(wanted, results.experiment, finding))

    # The share of noise kept is 1/H + (1 − 1/H)·correlation: it falls when the correlation does.
    for regime, steps in (
        ("label noise", _contrasts(results, table, noise_correlation, neighbours=True)),
        ("total variance, one fixed target", _contrasts(results, table, variance_kept)),
    ):
        wanted = claim(experiment, "extremes", regime)
        falls, errors, batches, points = zip(*steps, strict=True)
        evidence = Evidence(
            np.array(falls), np.array(errors), np.array(batches), results.replicates, points
        )
        finding = ordering(evidence, margin=wanted.margin, level=wanted.level)
        verdicts.append(Verdict.of(wanted, results.experiment, finding))
    return verdicts


def figure(results: Results) -> Figure:
    table = _table(results)
    table = table[[np.isscalar(a) for a in table[ANGLE]]]
    bandwidths = table[table[KERNEL] == "gaussian"][BANDWIDTH]
    small, large = bandwidths.min(), bandwidths.max()
    softmax = table[KERNEL] == "softmax"
    temperature = table[softmax][BANDWIDTH].iloc[0]
    drawing, axes = figures.panels(2, 2, sharex=True)
    for ax, kernel, bandwidth in (
        (axes[0, 0], "gaussian", small),
        (axes[0, 1], "gaussian", large),
        (axes[1, 0], "softmax", temperature),
    ):
        rows = table[(table[KERNEL] == kernel) & (table[BANDWIDTH] == bandwidth)]
        for _, color, marker, part in _series(rows):
            law = results.theory[part["name"].iloc[0]]["law_curve"]
            figures.theory(ax, law["angle"], law, color)
            figures.simulated(
                ax, part[ANGLE], part["correlation"], part["correlation_mcse"], color, marker
            )
        ax.set(ylim=(0, 1.04), ylabel="noise correlation of two heads")
        setting = f"b = {bandwidth:g}" if kernel == "gaussian" else f"s = {bandwidth**2:.2f}"
        ax.set_title(f"{kernel} kernel, {setting}")
    ax = axes[1, 1]
    for _, color, marker, part in _series(
        table[(table[KERNEL] == "gaussian") & (table[BANDWIDTH] == small)]
    ):
        figures.theory(ax, part[ANGLE], part["kept_theory"], color)
        figures.simulated(ax, part[ANGLE], part["kept"], part["kept_mcse"], color, marker)
    heads = results.simulation[table["name"].iloc[0]].sizes["head"]
    ax.axhline(1 / heads, color=figures.GREY, lw=0.8, ls=(0, (4, 3)), zorder=1)
    ax.annotate("1/H: independent heads", (0, 1 / heads), xytext=(0, 3), color=figures.GREY,
                textcoords="offset points", fontsize=7)  # fmt: skip
    ax.set(ylim=(0, 1.04), ylabel="variance of the ensemble / of a head")
    ax.set_title(f"signal and noise, b = {small:g}")
    for ax in axes[1]:
        ax.set(xlabel="principal angle θ (degrees)", xticks=range(0, 91, 15))
    series = _series(table)
    figures.key(
        axes[0, 1],
        [f"$d_k$ = {width}" for width, *_ in series],
        [color for _, color, *_ in series],
        [marker for _, _, marker, _ in series],
        loc="lower left",
    )
    figures.letters(axes.flat)
    return drawing


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    table = _table(results)
    gap = (table["correlation"] / table["law"] - 1).abs()
    gaussian = table[KERNEL] == "gaussian"
    return {
        "gap_gaussian": float(gap[gaussian].max()),
        "gap_softmax": float(gap[~gaussian].max()),
        "query_error": float((table["query_error"] / table["law"]).max()),
        "mcse": float((table["correlation_mcse"] / table["correlation"]).max()),
        "gap_exact": max(
            float((rows["correlation"] / rows["exact"] - 1).abs().max())
            for rows in (_exact(results, kernel) for kernel in ("gaussian", "softmax"))
        ),
        "few": int(_exact(results, "gaussian")[FEW].iloc[0]),
        "least_keys": float(table["n_eff"].min()),
        "queries": int(next(iter(results.theory.values())).sizes["query"]),
        "n": int(next(iter(results.theory.values())).attrs["n"]),
        "scale": results.provenance["simulation"]["specification"]["problem"]["queries"]["scale"],
    }


def _table(results: Results) -> pd.DataFrame:
    """The results' table with correlation, law and variance kept, a row a point of many queries."""
    table = results.table()
    if FEW in table:
        table = table[table[FEW].isna()].reset_index(drop=True)
    extra = []
    for row in table.to_dict("records"):
        name, theory = row["name"], results.theory[row["name"]]
        kept = mean_and_error(results.pseudovalues(name, variance_kept))
        extra.append(
            _correlation(results, name)
            | {
                "law": float(theory["law"]),
                "query_error": _query_error(theory),
                "queries": theory.sizes["query"],
                "kept": kept[0],
                "kept_mcse": kept[1],
                "kept_theory": float(theory["ensemble_variance"] / theory["variance"]),
            }
        )
    return pd.concat([table, pd.DataFrame(extra)], axis=1)


def _exact(results: Results, kernel: str) -> pd.DataFrame:
    """Points of few queries: correlation, that of exact theory, the bound on its relative error."""
    rows = []
    for name, at in results.points.items():
        if FEW in at and at[KERNEL] == kernel:
            theory = results.theory[name]
            parts = {p: theory[p].values for p in ("cross_noise_covariance", "noise_variance")}
            rows.append(
                {FEW: at[FEW], "name": name, "batches": results.batches(name)}
                | _correlation(results, name)
                | {
                    "exact": float(noise_correlation(parts)),
                    "bound": sum(float(theory[f"{p}_error"] / value) for p, value in parts.items()),
                }
            )
    return pd.DataFrame(rows)


def _correlation(results: Results, name: str) -> dict[str, float]:
    value, error = mean_and_error(results.pseudovalues(name, noise_correlation))
    return {"correlation": value, "correlation_mcse": error}


def _aligned(rows: pd.DataFrame) -> np.ndarray:
    return np.array([np.all(np.equal(a, 0)) for a in rows[ANGLE]])


def _query_error(theory: Any) -> float:
    """Standard error of the correlation from having drawn finitely many queries.

    The law is an average over all queries, the run has some: the delta method for a ratio of means
    over iid queries, with the spread over queries that theory predicts.
    """
    noise = theory["noise_covariance"].values
    heads = noise.shape[-1]
    variance = np.trace(noise, axis1=1, axis2=2) / heads
    pairs = (noise.sum(axis=(1, 2)) - heads * variance) / (heads * (heads - 1))
    residual = (pairs - pairs.mean() / variance.mean() * variance) / variance.mean()
    return float(residual.std(ddof=1) / np.sqrt(len(residual)))


def _contrasts(
    results: Results,
    table: pd.DataFrame,
    statistic: Callable[[Terms], np.ndarray],
    neighbours: bool = False,
) -> list[tuple[float, float, int, tuple[str, str]]]:
    """Paired falls of a statistic from each angle to the next, or to 90°.

    With their MCSE, the batches behind them, and the two points.
    """
    falls = []
    scalar = table[[np.isscalar(a) for a in table[ANGLE]]]
    for _, rows in scalar.groupby([KERNEL, BANDWIDTH, WIDTH]):
        names = rows.sort_values(ANGLE)["name"].tolist()
        values = {name: results.pseudovalues(name, statistic) for name in names}
        for index, name in enumerate(names[:-1]):
            other = names[index + 1] if neighbours else names[-1]
            before, after = common(values[name], values[other])
            falls.append((*mean_and_error(before - after), len(before), (name, other)))
    return falls


def _series(rows: pd.DataFrame) -> list[tuple[int, Any, str, pd.DataFrame]]:
    """Width, colour, marker and rows of each curve; the same colour for a width in every panel."""
    out = []
    for width in sorted(set(rows[WIDTH].astype(int))):
        place = {1: 0, 2: 1, 4: 2}.get(width, 3)
        part = rows[rows[WIDTH] == width].sort_values(ANGLE)
        out.append((width, figures.PALETTE[place], figures.MARKERS[place], part))
    return out
