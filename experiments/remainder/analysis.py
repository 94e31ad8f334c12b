"""The gap between exact and first-order theory against n."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sims.results import Results, mean_and_error

from sims import figures
from sims.estimates import covariance_of_means, mcse
from sims.judgement import Evidence, Verdict, claim, remainder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TERMS = {"noise variance": "noise_variance", "total variance": "variance"}
KERNELS = ("gaussian", "softmax")


def points_of(results: Results, kernel: str) -> list[str]:
    """Names of a kernel's points, smallest n first."""
    points = results.points
    found = [n for n, at in points.items() if at.get("heads.kernel", "gaussian") == kernel]
    return sorted(found, key=lambda name: points[name]["n"])


def gaps(results: Results, kernel: str, term: str) -> tuple[np.ndarray, np.ndarray]:
    """n, and the relative gaps first order − exact of every batch (B, k), common draws paired."""
    names, columns = points_of(results, kernel), []
    for name in names:
        simulated, predicted = results.simulation[name], results.theory[name]
        columns.append(-simulated[f"{term}_remainder"].values / float(predicted[term]))
    sizes = [results.points[name]["n"] for name in names]
    return np.array(sizes), np.stack(columns, axis=1)


def judge(results: Results, experiment) -> list[Verdict]:
    verdicts = []
    for kernel in KERNELS:
        for label, term in TERMS.items():
            chosen = claim(experiment, "remainder-order", f"{kernel}, {label}")
            n, values = gaps(results, kernel, term)
            evidence = Evidence(
                values.mean(0), mcse(values), len(values), results.replicates, fixed=True
            )
            found = remainder(
                evidence, n, margin=chosen.margin, level=chosen.level,
                covariance=covariance_of_means(values),
            )  # fmt: skip
            verdicts.append(Verdict.of(chosen, results.experiment, found))
    return verdicts


def numbers(results: Results) -> dict:
    """Numbers for the caption."""
    gains = [
        float((data["noise_variance_mcse"] / data["noise_variance_remainder_mcse"]) ** 2)
        for data in results.simulation.values()
    ]
    return {"gain_low": min(gains), "gain_high": max(gains)}


def figure(results: Results) -> Figure:
    drawing, axes = figures.panels(1, 2, width=figures.PAGE, height=2.9, sharey=True)
    with figures.style():
        for ax, kernel in zip(axes.flat, KERNELS, strict=True):
            for index, (_, term) in enumerate(TERMS.items()):
                n, values = gaps(results, kernel, term)
                mean, error = np.transpose([mean_and_error(column) for column in values.T])
                # The line's height: weighted as the fit, so that noisy points do not move it.
                weight = np.where(mean > 0, (mean / error) ** 2, 0)
                level = np.average(np.log(np.abs(mean) * n), weights=weight)
                color = figures.PALETTE[index]
                figures.theory(ax, n, 100 * np.exp(level) / n, color, ls="--")
                figures.simulated(
                    ax, n * 1.06**index, 100 * mean, 100 * error, color, figures.MARKERS[index]
                )
            figures.log_axes(ax, x=True, y=True)
            ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
            ax.set_xticks(n, [str(k) for k in n])
            ax.set_xticks([], minor=True)
            ax.set_xlabel("number of keys $n$")
            ax.set_title(f"{kernel} kernel")
        axes[0, 0].set_ylabel("1 − exact / first order (%)")
        figures.key(axes[0, 0], list(TERMS), loc="lower left", title="dashed: slope −1")
        figures.letters(axes.flat)
    return drawing
