"""First-order theory against exact theory, and exact theory against simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sims.results import Results

from sims import figures
from sims.judgement import Evidence, Verdict, claim, equivalence, rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TERMS = {
    "squared bias": "squared_bias",
    "signal variance": "signal_variance",
    "noise variance": "noise_variance",
    "signal covariance": "cross_signal_covariance",
    "noise covariance": "cross_noise_covariance",
    "mean squared error": "mse",
}


def kernel_of(coordinates: dict) -> str:
    """The name of a point's kernel, as claims and legend have it."""
    kernel = coordinates.get("heads.kernel", "gaussian")
    return f"{kernel}, anisotropic keys" if "design" in coordinates else kernel


def by_kernel(results: Results) -> dict[str, list[str]]:
    """Names of points, smallest n first, under the name of their kernel."""
    groups: dict[str, list[str]] = {}
    for name in sorted(results.points, key=lambda k: results.points[k]["n"]):
        groups.setdefault(kernel_of(results.points[name]), []).append(name)
    return {kernel: groups[kernel] for kernel in sorted(groups)}


def curve(results: Results, names: list[str], term: str) -> tuple[np.ndarray, np.ndarray]:
    """n_eff, and first-order over exact value less 1, along a kernel's dense line of sizes."""
    data = next(results.theory[name] for name in names if "curve_n" in results.theory[name])
    gap = data[f"curve_first_{term}"] / data[f"curve_{term}"] - 1
    return data["curve_n_eff"].values, gap.values


def effective_keys(results: Results, name: str) -> float:
    """Harmonic mean over queries and heads: variances average 1/n_eff, not n_eff."""
    return float(1 / (1 / results.theory[name]["n_eff"]).mean())


def simulated(results: Results, name: str, term: str) -> tuple[float, float]:
    """Simulated over exact value less 1, and its MCSE."""
    data, exact = results.simulation[name], float(results.theory[name][term])
    return float(data[term].mean()) / exact - 1, float(data[f"{term}_mcse"]) / abs(exact)


def bound(results: Results, name: str, term: str) -> float:
    """Exact theory's own error, relative to its value."""
    data = results.theory[name]
    return float(data[f"{term}_error"]) / abs(float(data[term]))


def judge(results: Results, experiment) -> list[Verdict]:
    chosen = claim(experiment, "exact", "every term")
    names = [name for name in results.points for _ in TERMS]
    terms = [term for _ in results.points for term in TERMS.values()]
    each = list(zip(names, terms, strict=True))
    gap, error = np.array([simulated(results, *one) for one in each]).T
    evidence = Evidence(
        gap,
        error,
        np.array([results.batches(name) for name in names]),
        results.replicates,
        tuple((name,) for name in names),
        bounds=np.array([bound(results, *one) for one in each]),
    )
    found = equivalence(evidence, margin=chosen.margin, level=chosen.level)
    verdicts = [Verdict.of(chosen, results.experiment, found)]
    groups = by_kernel(results)
    for chosen in experiment.claims[1:]:
        members = groups.get(chosen.regime.removeprefix("first order, "), [])
        if chosen.id == "remainder-order":
            keys, gap = curve(results, members, "variance") if members else (np.zeros(0),) * 2
            inside = keys >= experiment.settings["fitted_from"]
            evidence = Evidence(np.abs(gap[inside]), 0.0, np.inf)
            found = rate(
                evidence, keys[inside], expected=-1.0, margin=chosen.margin, level=chosen.level
            )
        else:
            gaps = []
            for term in TERMS.values() if members else ():
                keys, gap = curve(results, members, term)
                gaps.extend(gap[keys >= experiment.settings["least_n_eff"]])
            evidence = Evidence(np.array(gaps), 0.0, np.inf)
            found = equivalence(evidence, margin=chosen.margin, level=chosen.level)
        verdicts.append(Verdict.of(chosen, results.experiment, found))
    return verdicts


def numbers(results: Results) -> dict:
    """Numbers for the caption."""
    gaps = [abs(simulated(results, n, t)[0]) for n in results.points for t in TERMS.values()]
    errors = [simulated(results, n, t)[1] for n in results.points for t in TERMS.values()]
    keys = [effective_keys(results, name) for name in results.points]
    return {
        "worst_gap": max(gaps),
        "worst_error": max(errors),
        "comparisons": len(gaps),
        "fewest_keys": min(keys),
        "most_keys": max(keys),
    }


def figure(results: Results) -> Figure:
    groups = by_kernel(results)
    drawing, axes = figures.panels(2, 2, width=figures.PAGE, height=4.6, sharex=True)
    shown = {
        "noise variance": axes[0, 0],
        "signal variance": axes[0, 1],
        "squared bias": axes[1, 0],
    }
    with figures.style():
        for label, ax in shown.items():
            term = TERMS[label]
            ax.axhspan(-5, 5, color="0.93", zorder=0)
            for index, names in enumerate(groups.values()):
                color = figures.PALETTE[index]
                keys, gap = curve(results, names, term)
                figures.theory(ax, keys, 100 * gap, color)
                for name in names:
                    first = float(results.theory[name][f"first_{term}"])
                    exact = float(results.theory[name][term])
                    ratio, error = simulated(results, name, term)
                    value = first / (exact * (1 + ratio))
                    figures.simulated(
                        ax,
                        effective_keys(results, name),
                        100 * (value - 1),
                        100 * value * error,
                        color,
                        figures.MARKERS[index],
                    )
            ax.set_yscale("symlog", linthresh=1.0)
            ticks = (-10, -1, 0, 1, 10, 100, 1000, 10000)
            ax.set_yticks(ticks, [f"{t:,}".replace("-", "−") for t in ticks])
            ax.set_ylim(-20, 20000)
            ax.axhline(0, color=figures.GREY, lw=0.8, zorder=1)
            ax.set_title(label)
            ax.set_ylabel("first order / exact − 1 (%)")
        ax = axes[1, 1]
        ax.axhspan(-1, 1, color="0.93", zorder=0)
        ax.axhline(0, color=figures.GREY, lw=0.8, zorder=1)
        for index, names in enumerate(groups.values()):
            for k, term in enumerate(TERMS.values()):
                found = np.array([simulated(results, name, term) for name in names]).T
                keys = np.array([effective_keys(results, name) for name in names])
                figures.simulated(
                    ax,
                    keys * 1.08 ** (k - 2.5),
                    100 * found[0],
                    100 * found[1],
                    figures.PALETTE[index],
                    figures.MARKERS[index],
                    markersize=2.4,
                    capsize=1,
                )
        ax.set_title("all terms")
        ax.set_ylabel("simulation / exact − 1 (%)")
        ax.set_ylim(-1.5, 1.5)
        for ax in axes.flat:
            figures.log_axes(ax, x=True)
        for ax in axes[1]:
            ax.set_xlabel(r"effective keys $n_\mathrm{eff}$")
        figures.key(axes[1, 0], list(groups), loc="upper right")
        figures.letters(axes.flat)
    return drawing
