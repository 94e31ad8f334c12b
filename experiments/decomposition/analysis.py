"""Theory against simulation, term by term, over the whole grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sims.results import Results

from sims import figures
from sims.judgement import Evidence, Verdict, claim, equivalence

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


def effective_keys(results: Results, name: str) -> float:
    """Harmonic mean of n_eff over queries and heads.

    The variance terms average r_hh = n/n_eff over queries, so it is the small n_eff that count;
    their arithmetic mean hides a query that attends to few keys.
    """
    return float(1 / (1 / results.theory[name]["n_eff"]).mean())


def gaps(results: Results, term: str, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Relative gaps (theory − simulation)/theory, and their MCSE, at those points."""
    pairs = []
    for name in names:
        simulated, predicted = results.simulation[name], float(results.theory[name][term])
        pairs.append(
            (
                1 - float(simulated[term].mean()) / predicted,
                float(simulated[f"{term}_mcse"]) / abs(predicted),
            )
        )
    gap, error = np.array(pairs).T
    return gap, error


def exact_gaps(
    results: Results, term: str, names: list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaps (exact theory − simulation)/scale, their MCSE, and bounds of theory's own error.

    The scale is the term itself, or the variance of a head for signal terms: small shares of it,
    whose relative error says little.
    """
    rows = []
    for name in names:
        simulated, predicted = results.simulation[name], results.theory[name]
        exact = float(predicted[f"exact_{term}"])
        scale = float(predicted["exact_variance"]) if "signal" in term else abs(exact)
        values = (
            exact - float(simulated[term].mean()),
            float(simulated[f"{term}_mcse"]),
            float(predicted[f"exact_{term}_error"]),
        )
        rows.append([value / scale for value in values])
    gap, error, bound = np.array(rows).T
    return gap, error, bound


def judge(results: Results, experiment) -> list[Verdict]:
    inside = [
        name
        for name in results.points
        if effective_keys(results, name) >= experiment.settings["least_n_eff"]
    ]
    verdicts = []

    def decide(chosen, gap, error, names, bound=0.0):
        batches = np.array([results.batches(name) for name in names])
        evidence = Evidence(gap, error, batches, results.replicates, names, bounds=bound)
        found = equivalence(evidence, margin=chosen.margin, level=chosen.level)
        verdicts.append(Verdict.of(chosen, results.experiment, found))

    narrow = [name for name in results.points if "exact_mse" in results.theory[name]]
    for regime, term in TERMS.items():
        decide(claim(experiment, "decomposition", regime), *gaps(results, term, inside), inside)
        chosen = claim(experiment, "decomposition", f"exact, {regime}")
        gap, error, bound = exact_gaps(results, term, narrow)
        decide(chosen, gap, error, narrow, bound)
    # Paired over batches: both sides share the keys, so only the labels' noise is left.
    pairs = []
    for data in results.simulation.values():
        difference = (data["raw_mse"] - data["mse"]).values
        scale = float(data["mse"].mean())
        pairs.append(
            (
                difference.mean() / scale,
                difference.std(ddof=1) / np.sqrt(len(difference)) / scale,
            )
        )
    gap, error = np.array(pairs).T
    chosen = claim(experiment, "decomposition", "the sum against drawn labels")
    decide(chosen, gap, error, list(results.points))
    return verdicts


def numbers(results: Results) -> dict:
    """Numbers for the caption."""
    gains = []
    for data in results.simulation.values():
        raw, integrated = data["raw_ensemble_variance"], data["ensemble_variance"]
        gains.append(float(raw.var("batch", ddof=1) / integrated.var("batch", ddof=1)))
    names = list(results.points)
    worst = max(np.abs(gaps(results, term, names)[0]).max() for term in TERMS.values())
    narrow = [name for name in names if "exact_mse" in results.theory[name]]
    exact = max(np.abs(exact_gaps(results, t, narrow)[0]).max() for t in TERMS.values())
    keys = [effective_keys(results, name) for name in results.points]
    sharp = [float(results.theory[name]["n_eff"].min()) for name in results.points]
    return {
        "fewest_keys_at_a_query": min(sharp),
        "gain_low": min(gains),
        "gain_high": max(gains),
        "worst_gap": worst,
        "worst_exact": exact,
        "fewest_keys": min(keys),
        "most_keys": max(keys),
    }


def figure(results: Results) -> Figure:
    names = list(results.points)
    kernel = [results.points[n].get("heads.kernel", "gaussian") for n in names]
    keys = np.array([effective_keys(results, name) for name in names])
    drawing, axes = figures.panels(2, 3, width=figures.PAGE, height=4.4, sharex=True)
    with figures.style():
        for ax, (regime, term) in zip(axes.flat, TERMS.items(), strict=True):
            gap, error = gaps(results, term, names)
            ax.axhspan(-5, 5, color="0.93", zorder=0)
            ax.axhline(0, color=figures.GREY, lw=0.8, zorder=1)
            for index, kind in enumerate(("gaussian", "softmax")):
                chosen = np.array(kernel) == kind
                figures.simulated(
                    ax,
                    keys[chosen],
                    100 * gap[chosen],
                    100 * error[chosen],
                    figures.PALETTE[index],
                    figures.MARKERS[index],
                )
            figures.log_axes(ax, x=True)
            possible = (30, 100, 300, 1000, 3000, 10000)
            ticks = [t for t in possible if keys.min() < 1.5 * t < 3 * keys.max()]
            ax.set_xticks(ticks, [str(t) for t in ticks])
            reach = max(6.0, 1.1 * np.max(100 * (np.abs(gap) + figures.BAR * error)))
            ax.set_ylim(-reach, reach)
            ax.set_title(regime)
        for ax in axes[-1]:
            ax.set_xlabel(r"effective keys $n_\mathrm{eff}$")
        for ax in axes[:, 0]:
            ax.set_ylabel("1 − simulation / theory (%)")
        figures.key(axes[0, 0], ["gaussian", "softmax"], loc="lower right")
        figures.letters(axes.flat)
    return drawing
