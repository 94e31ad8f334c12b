"""Variance of pooled agents against the law, with v and ρ measured on other replicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from sims.results import Results, mean_and_error

from sims import figures
from sims.judgement import Evidence, Verdict, claim, equivalence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REGIMES = {
    "Nadaraya–Watson heads": ("heads", 1),
    "random-forest trees": ("trees", 1),
    "ants, lasting pheromone": ("ants", 1),
    "ants, evaporating pheromone": ("ants", 0),
}
"""Regime to the kind of its agents and whether they pool alike."""


def law(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """``C + (V − C)/M`` and its standard error, for each M."""
    v, c = data["variance"].values[:, None], data["covariance"].values[:, None]
    return _mean(c + (v - c) / data["agents"].values)


def gaps(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Pooled variance over the law's, less 1, for M ≥ 2; the two are independent."""
    (value, error), (expected, other) = _mean(data["pooled"].values), law(data)
    ratio = value / expected
    spread = ratio * np.hypot(error / value, other / expected)
    return ratio[1:] - 1, spread[1:]


def collapsed(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """``(Var/v − ρ)/(1 − ρ)``, which the law says is 1/M, with its standard error."""
    (value, error) = _mean(data["pooled"].values)
    v, c = data["variance"].values, data["covariance"].values
    out = (value - c.mean()) / (v.mean() - c.mean())
    # Linearised in V and C, batch by batch; the pooled part is independent of them.
    parts = -((c - c.mean()) * (1 - out[:, None]) + (v - v.mean()) * out[:, None])
    own = parts.std(axis=1, ddof=1) / np.sqrt(len(v))
    return out, np.hypot(error, own) / (v.mean() - c.mean())


def judge(results: Results, experiment: Any) -> list[Verdict]:
    verdicts = []

    def said(regime: str, effects: list[Any], names: list[str]) -> None:
        wanted = claim(experiment, "unification", regime)
        value, error, slack = ([x for e in effects for x in np.ravel(e[i])] for i in range(3))
        evidence = Evidence(
            np.array(value), np.array(error), min((results.batches(n) for n in names), default=2),
            min((int(results.simulation[n].attrs["replicates"]) for n in names), default=0),
            fixed=True, bounds=np.array(slack),
        )  # fmt: skip
        finding = equivalence(evidence, margin=wanted.margin, level=wanted.level)
        verdicts.append(Verdict.of(wanted, results.experiment, finding))

    for regime, wanted in REGIMES.items():
        names = [n for n, d in results.simulation.items() if _kind(d) == wanted]
        pooled = [gaps(results.simulation[n]) for n in names]
        said(regime, [(*found, np.zeros_like(found[0])) for found in pooled], names)
    known = [n for n, d in results.theory.items() if np.isfinite(d["variance"])]
    said("variance and correlation by theory", [_against(results, n) for n in known], known)
    return verdicts


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    rho = {
        name: float(data["covariance"].mean() / data["variance"].mean())
        for name, data in results.simulation.items()
    }
    data = next(d for d in results.simulation.values() if not d.attrs["lasting"])
    return {
        "least": min(rho.values()),
        "most": max(rho.values()),
        "agents": int(data["agents"][-1]),
        "evaporated": float(gaps(data)[0][-1]),
    }


def figure(results: Results) -> Figure:
    drawing, axes = figures.panels(1, 2, height=3.3, width=figures.PAGE)
    left, right = axes[0]
    with figures.style():
        for i, data in enumerate(results.simulation.values()):
            color, marker = figures.PALETTE[i], figures.MARKERS[i]
            v = data["variance"].values.mean()
            m = np.geomspace(1, data["agents"].values[-1], 100)
            rho = data["covariance"].values.mean() / v
            figures.theory(left, m, rho + (1 - rho) / m, color)
            value, error = _mean(data["pooled"].values)
            figures.simulated(left, data["agents"], value / v, error / v, color, marker)
            value, error = collapsed(data)
            # Side by side, or seven systems would lie on one another.
            shift = 1.03 ** (i - (len(results.simulation) - 1) / 2)
            figures.simulated(right, data["agents"] * shift, value, error, color, marker)
        most = max(int(d["agents"][-1]) for d in results.simulation.values())
        m = np.geomspace(1, most, 100)
        figures.theory(right, m, 1 / m, figures.GREY)
        right.annotate("law, $1/M$", (m[25], 1 / m[25]), xytext=(10, 6), fontsize=7, ha="left",
                       textcoords="offset points", color=figures.GREY)  # fmt: skip
        ticks = [2**k for k in range(0, 12, 2) if 2**k <= most]
        for ax in (left, right):
            figures.log_axes(ax, x=True, y=True, plain=True)
            ax.set_xticks(ticks, [str(t) for t in ticks])
            ax.set_xticks([], minor=True)
            ax.set(xlabel="number of agents $M$")
        left.set(ylabel="variance of the pool / variance of one", ylim=(0.04, 1.15))
        left.set_yticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
        right.set(ylabel="share that pooling can remove and has not", ylim=(0.006, 1.3))
        right.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
        figures.key(right, list(results.simulation), loc="lower left", fontsize=6.5)
    figures.letters(axes.flat)
    return drawing


def _kind(data: xr.Dataset) -> tuple[str, int]:
    return str(data.attrs["kind"]), int(data.attrs["lasting"])


def _mean(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over batches, the first axis, and its standard error."""
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))


def _against(results: Results, name: str) -> tuple[list[float], ...]:
    """Measured v and ρv over theory's, less 1; MCSE; the bound on theory's own error."""
    found = []
    for term in ("variance", "covariance"):
        value, error = mean_and_error(results.simulation[name][term].values)
        theory = results.theory[name]
        expected, slack = (float(theory[part]) for part in (term, f"{term}_error"))
        found.append((value / expected - 1, error / expected, slack / expected))
    return tuple(list(column) for column in zip(*found, strict=True))
