"""Gains of weighing heads by regime, and the error under estimated weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from sims import figures
from sims.judgement import Evidence, Verdict, bound, claim, equivalence, ordering
from sims.results import Results, mean_and_error
from sims.weighting import WEIGHTINGS, risk

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EQUAL = ("exchangeable", "ring")
"""Regimes whose risk matrix has equal row sums."""
RULES = {"ordered": "ordered", "non_negative": "non-negative", "optimal": "optimal (any sign)"}
LABELS = {
    "exchangeable": "exchangeable",
    "ring": "ring",
    "cluster": "4 of 6\nsimilar",
    "bandwidths": "unequal\nbandwidths",
    "widths": "unequal\nwidths",
}


def regimes(results: Results, experiment: Any) -> dict[str, str]:
    """Regime to the name of its point."""
    settings = experiment.settings | experiment.settings.get(results.fidelity, {})
    names = [name for name in results.simulation if name != "cost"]
    return dict(zip(settings["regimes"], names, strict=True))


def matrices(data: xr.Dataset, end: str = "") -> np.ndarray:
    """Risk matrix of the heads, (H, H), or one a batch (B, H, H); ``_error``: theory's bounds."""
    names = ("bias_product", "signal_covariance", "noise_covariance")
    return np.sum([data[f"integrated_{name}{end}"].values for name in names], axis=0)


def predicted_gain(data: xr.Dataset, rule: str) -> float:
    """Share of the error under uniform weights that a rule's weights remove, by theory."""
    matrix = matrices(data)
    even = float(risk(WEIGHTINGS["uniform"](matrix), matrix))
    return 1 - float(risk(WEIGHTINGS[rule](matrix), matrix)) / even


def gain_bound(data: xr.Dataset) -> float:
    """Bound on the error of theory's gain of optimal weights, from those of the matrix' entries.

    That the weights change with the matrix is of second order, since they are the best.
    """
    matrix, error = matrices(data), matrices(data, "_error")
    even, best = (WEIGHTINGS[rule](matrix) for rule in ("uniform", "optimal"))
    kept = float(risk(best, matrix) / risk(even, matrix))
    return float(risk(np.abs(best), error) + kept * risk(even, error)) / float(risk(even, matrix))


def simulated_gain(data: xr.Dataset, rule: str) -> tuple[float, float]:
    """The same by simulation, cross-fitted: a batch judges the weights that the others chose."""
    batches = matrices(data)
    others = (batches.sum(0) - batches) / (len(batches) - 1)
    even = risk(np.full(batches.shape[-1], 1 / batches.shape[-1]), batches)
    chosen = np.array([risk(WEIGHTINGS[rule](o), b) for o, b in zip(others, batches, strict=True)])
    ratio = 1 - chosen.sum() / even.sum()
    # Linearised ratio of two means of the same batches.
    error = mean_and_error((even - chosen - ratio * even) / even.mean())[1]
    return float(ratio), error


def judge(results: Results, experiment: Any) -> list[Verdict]:
    places = regimes(results, experiment)
    cost, law = results.simulation["cost"], results.theory["cost"]
    heads, batches = law.attrs["heads"], results.batches("cost")
    gains = {k: simulated_gain(results.simulation[v], "optimal") for k, v in places.items()}
    even = float(cost["error"].sel(rule="uniform").mean())

    def said(regime: str, decide: Any, effects: Any, fewest: int, bounds: Any = 0.0) -> Verdict:
        wanted = claim(experiment, "weighting", regime)
        values, errors = np.reshape(effects, (-1, 2)).T
        evidence = Evidence(values, errors, fewest, results.replicates, fixed=True, bounds=bounds)
        finding = decide(evidence, margin=wanted.margin, level=wanted.level)
        return Verdict.of(wanted, results.experiment, finding)

    fewest = min(results.batches(name) for name in places.values())
    sized = [
        (gain - predicted_gain(results.theory[places[k]], "optimal"), error)
        for k, (gain, error) in gains.items()
    ]
    bounds = [gain_bound(results.theory[places[k]]) for k in gains]
    many = [float(m) for m in cost["pairs"].values if m >= 8 * heads]
    costs = [
        np.array(mean_and_error(_excess(cost, m))) / float(law["excess"].sel(pairs=m)) for m in many
    ]
    twice, few = 2 * heads, [float(m) for m in cost["pairs"].values if heads < m <= 4 * heads]
    return [
        said("equal row sums", bound, [g for k, g in gains.items() if k in EQUAL], fewest),
        said("unequal heads", ordering, [g for k, g in gains.items() if k not in EQUAL], fewest),
        said("size of the gain", equivalence, sized, fewest, bounds),
        said("cost of estimation", equivalence, [(v - 1, e) for v, e in costs], batches),
        said(
            "little data", ordering,
            [mean_and_error(_difference(cost, twice, "optimal", "uniform") / even)], batches,
        ),
        said(
            "constraints insure", ordering,
            [mean_and_error(_difference(cost, m, "optimal", "non_negative") / even) for m in few],
            batches,
        ),
    ]  # fmt: skip


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    cost, heads = results.simulation["cost"], int(results.theory["cost"].attrs["heads"])
    even = cost["error"].sel(rule="uniform").mean().item()
    best = cost["oracle"].sel(rule="optimal").mean().item()
    worse, insured = (
        cost["error"].sel(rule=rule, pairs=2 * heads).mean().item() / even
        for rule in ("optimal", "non_negative")
    )
    return {
        "possible": 1 - best / even,
        # Where the law's cost is what the best weights gain on these training sets.
        "break_even": round(heads + _law_scale(results) / (even - best)),
        "least": 2 * heads,
        "worse": worse,
        "insured": insured,
    }


def figure(results: Results) -> Figure:
    drawing, axes = figures.panels(1, 2, height=2.9, width=figures.PAGE)
    with figures.style():
        _gains(axes[0, 0], results)
        _costs(axes[0, 1], results)
    figures.letters(axes.flat)
    return drawing


def _excess(cost: xr.Dataset, pairs: float) -> np.ndarray:
    """Error of estimated optimal weights beyond the best ones of the same fits, one a batch."""
    return (
        cost["error"].sel(rule="optimal", pairs=pairs) - cost["oracle"].sel(rule="optimal")
    ).values


def _difference(cost: xr.Dataset, pairs: float, first: str, second: str) -> np.ndarray:
    at = cost["error"].sel(pairs=pairs)
    return (at.sel(rule=first) - at.sel(rule=second)).values


def _gains(ax: Axes, results: Results) -> None:
    names = [name for name in results.simulation if name != "cost"]
    labels = list(LABELS) if len(names) == len(LABELS) else ["exchangeable", "bandwidths"]
    for i, (rule, text) in enumerate(RULES.items()):
        color, marker = figures.PALETTE[i], figures.MARKERS[i]
        for place, name in enumerate(names):
            x = place + (i - 1) * 0.26
            predicted = 100 * predicted_gain(results.theory[name], rule)
            figures.theory(ax, [x - 0.11, x + 0.11], [predicted] * 2, color, lw=1.6)
            gain, error = simulated_gain(results.simulation[name], rule)
            figures.simulated(
                ax, x, 100 * gain, 100 * error, color, marker, label=text if not place else None
            )
    ax.axhline(0, color=figures.GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)
    ax.set_xticks(range(len(names)), [LABELS[k] for k in labels], fontsize=6.5)
    ax.set(ylabel="gain over uniform weights (%)")
    ax.legend(title="weights", loc="upper left")


def _law_scale(results: Results) -> float:
    """(σ² + R*)(H − 1), from the law's last value."""
    law = results.theory["cost"]
    return float(law["excess"][-1] * (law["pairs"][-1] - law.attrs["heads"]))


def _costs(ax: Axes, results: Results) -> None:
    """Error beyond the best weights of the same training sets, in units of uniform weights'."""
    cost, heads = results.simulation["cost"], results.theory["cost"].attrs["heads"]
    even = cost["error"].sel(rule="uniform").mean().item()
    best = cost["oracle"].sel(rule="optimal")
    last = float(cost["pairs"][-1])
    for i, rule in enumerate(RULES):
        value, error = np.array(
            [
                mean_and_error((cost["error"].sel(rule=rule, pairs=m) - best).values / even)
                for m in cost["pairs"]
            ]
        ).T
        # Side by side: the rules are close where their constraints do not bind.
        x = cost["pairs"] * (1 + 0.06 * (i - 1))
        figures.simulated(ax, x, value, error, figures.PALETTE[i], figures.MARKERS[i])
    m = np.geomspace(2 * heads * 0.9, last * 1.1, 200)
    color = figures.PALETTE[list(RULES).index("optimal")]
    figures.theory(ax, m, _law_scale(results) / (m - heads) / even, color)
    level, error = mean_and_error((cost["error"].sel(rule="uniform", pairs=last) - best).values)
    ax.axhline(level / even, color=figures.GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)
    figures.simulated(ax, last * 1.25, level / even, error / even, figures.GREY, "D")
    ax.annotate("uniform", (last, level / even), xytext=(2, 3), textcoords="offset points",
                ha="right", fontsize=6.5, color=figures.GREY)  # fmt: skip
    figures.log_axes(ax, x=True, y=True, plain=True)
    ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    ax.set(xlabel="held-out pairs $m$ behind the weights",
           ylabel="MSE beyond the best weights'\n(units of MSE under uniform weights)")  # fmt: skip
