"""Slopes of the error at the best bandwidth, for one head and for averaged heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from sims.results import Results, mean_and_error

from sims import figures
from sims.judgement import Evidence, Verdict, bound, claim, equivalence, ordering

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAR = np.geomspace(1e8, 1e16, 33)
COMMON = np.geomspace(1e3, 1e5, 17)
"""Numbers of keys of the slopes; of those at sizes that a practitioner would have."""
LEAST_KEYS = 10.0
"""Effective keys below which first-order theory is not asked."""
FEWEST_COMPARED = 50.0
HEADS = (4, 8)
SATURATION = 2.0
NESTED = ((1, 2), (2, 4))
"""(d_0, d_k) of averaged heads."""
NODES = np.arange(-2, 3)
BETWEEN = np.linspace(-0.5, 0.5, 41)
LAGRANGE = np.linalg.solve(
    np.vander(NODES, 5, increasing=True).T.astype(float), np.vander(BETWEEN, 5, increasing=True).T
).T
"""Values between the nodes from values at the nodes, in steps of the grid of bandwidths."""


def exponent(beta: Any, width: int) -> Any:
    """−2β/(2β + d_k)."""
    return -2 * beta / (2 * beta + width)


def best(data: xr.Dataset, n: Any, heads: float = 1, extra: int = 0) -> tuple[Any, Any]:
    """Smallest MSE over bandwidths and where it is, each (…, n); … as in the data (group, beta).

    H heads (``inf`` allowed) of width d_0 + extra, averaged: the nuisance coordinates multiply the
    variance of a head by their overlap, and the covariance of two heads by 1. Around the best
    bandwidth of the grid, squared bias and variance are quartics of log b through five points,
    both in logarithms.
    """
    own = data["nuisance"] ** extra
    n = xr.DataArray(np.asarray(n, float), dims="n")
    bias = data["limit_bias"] + own * data["cross_bias"] / n + own**2 * data["ratio_bias"] / n**2
    variance = (own / heads + 1 - 1 / heads) * data["variance"] / n
    allowed = (bias + variance).where(n >= LEAST_KEYS * own * data["overlap"])
    order = ("bandwidth", *(d for d in allowed.dims if d not in ("bandwidth", "n")), "n")
    at = np.nanargmin(allowed.transpose(*order).values, axis=0)
    at = np.clip(at, 2, len(data["bandwidth"]) - 3)
    fine: Any = 0.0
    for part in (bias, variance):
        # At bandwidths far below the best one squared biases are below rounding.
        log = np.log(np.maximum(part.transpose(*order).values, np.finfo(float).tiny))
        near = [np.take_along_axis(log, at[None] + node, 0)[0] for node in NODES]
        fine = fine + np.exp(np.tensordot(LAGRANGE, near, axes=1))
    step = np.log(data["bandwidth"].values[1] / data["bandwidth"].values[0])
    return fine.min(0), data["bandwidth"].values[at] * np.exp(BETWEEN[fine.argmin(0)] * step)


def slopes(data: xr.Dataset, n: np.ndarray, heads: float = 1, extra: int = 0) -> np.ndarray:
    """Least-squares slopes of log MSE on log n, (group, beta)."""
    log = np.log(best(data, n, heads, extra)[0])
    x = np.log(n) - np.log(n).mean()
    return log @ x / (x @ x)


def judge(results: Results, experiment: Any) -> list[Verdict]:
    law = {name: data for name, data in results.theory.items() if name != "ensemble"}
    widths = {width_of(name): data for name, data in law.items()}
    groups = min(data.sizes["group"] for data in widths.values())
    single: dict[str, list[Any]] = {"β < 2": [], "β = 2": [], "β = 3, saturation": []}
    excess = []
    for width, data in widths.items():
        for beta, fitted in zip(data["beta"].values, slopes(data, FAR).T, strict=True):
            regime = "β < 2" if beta < 2 else "β = 2" if beta == 2 else "β = 3, saturation"
            expected = exponent(min(beta, SATURATION), width)
            single[regime].append(mean_and_error(fitted - expected))
            excess.append(mean_and_error(exponent(beta, width) - fitted))
    pairs = [(d, k) for d, k in NESTED if d in widths]
    averaged = [(widths[d], k - d, k, heads) for d, k in pairs for heads in HEADS]
    unlimited = [(widths[d], k - d, k, np.inf) for d, k in pairs]
    verdicts = []

    # A replicate of a slope is a target draw.
    draws = min(int(data.attrs["targets"]) for data in widths.values())

    def said(regime: str, decide: Any, effects: Any, batches: Any, replicates: int = draws) -> None:
        wanted = claim(experiment, "rates", regime)
        values, errors = np.reshape(effects, (-1, 2)).T
        evidence = Evidence(values, errors, batches, replicates, fixed=True)
        finding = decide(evidence, margin=wanted.margin, level=wanted.level)
        verdicts.append(Verdict.of(wanted, results.experiment, finding))

    for regime, effects in single.items():
        said(regime, equivalence, effects, groups)
    said("bound", bound, excess, groups)
    compared = compare(results)
    inside = compared[compared[:, 2] >= FEWEST_COMPARED]
    fewest = min(results.batches(name) for name in results.points)
    said("theory against simulation", equivalence, inside[:, :2], fewest, results.replicates)
    ratios = [(gain(data, extra, heads), width, heads) for data, extra, width, heads in averaged]
    said(
        "averaging, constant", ordering,
        [mean_and_error(1 - column) for ratio, _, _ in ratios for column in ratio.T], groups,
    )  # fmt: skip
    betas = next(iter(widths.values()))["beta"].values
    said(
        "averaging, size of the constant", equivalence,
        [
            mean_and_error(column / heads ** exponent(min(beta, SATURATION), width) - 1)
            for ratio, width, heads in ratios
            for beta, column in zip(betas, ratio.T, strict=True)
        ],
        groups,
    )  # fmt: skip
    for regime, cases, n in (
        ("averaging, exponent", averaged, FAR),
        ("averaging, exponent at common sizes", averaged, COMMON),
        ("averaging, exponent of many heads", unlimited, FAR),
    ):
        changes = [
            mean_and_error(column)
            for data, extra, _, heads in cases
            for column in (slopes(data, n, heads, extra) - slopes(data, n, 1, extra)).T
        ]
        said(regime, equivalence, changes, groups)
    one, many = simulated_slopes(results)
    said("averaging, exponent by simulation", equivalence, [mean_and_error(many - one)],
         len(one), results.replicates)  # fmt: skip
    return verdicts


def simulated_slopes(results: Results) -> np.ndarray:
    """Slopes of log MSE on log n over the simulated sizes, of one head and of many, (2, batch)."""
    data = results.simulation["ensemble"]
    x = np.log(data["size"].values)
    x = x - x.mean()
    return np.moveaxis(np.log(data["mse"].values) @ x / (x @ x), -1, 0)


def width_of(name: str) -> int:
    """Head width of a point."""
    return int(name.split()[1])


def compare(results: Results) -> np.ndarray:
    """Theory over simulation less 1, its standard error, and n_eff: a row a simulated problem."""
    rows = []
    for name, predicted in results.theory.items():
        batches = results.simulation[name]["mse"].values
        value, error = batches.mean(0), batches.std(0, ddof=1) / np.sqrt(len(batches))
        ratio = predicted["mse"].values / value
        rows.append(np.stack([ratio - 1, ratio * error / value, predicted["n_eff"].values], -1))
    return np.concatenate([row.reshape(-1, 3) for row in rows])


def gain(data: xr.Dataset, extra: int, heads: float) -> np.ndarray:
    """MSE of H heads over that of one at the largest n, (group, beta)."""
    last = FAR[-1:]
    return (best(data, last, heads, extra)[0] / best(data, last, 1, extra)[0])[..., 0]


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    compared = compare(results)
    inside = compared[:, 2] >= FEWEST_COMPARED
    one, many = simulated_slopes(results)
    gained, error = mean_and_error(one - many)
    x = np.log(results.theory["ensemble"]["size"].values)
    x = x - x.mean()
    one, many = np.log(results.theory["ensemble"]["mse"].values) @ x / (x @ x)
    common = slopes(results.theory["width 1"], COMMON, max(HEADS), 1) - slopes(
        results.theory["width 1"], COMMON, 1, 1
    )
    edges = [
        slopes(data, FAR)[:, list(data["beta"].values).index(SATURATION)].mean()
        - exponent(SATURATION, width_of(name))
        for name, data in results.theory.items()
        if name != "ensemble"
    ]
    return {
        "compared": int(inside.sum()),
        "left_out": int((~inside).sum()),
        "worst": float(np.abs(compared[inside, 0]).max()),
        "few_keys": float(compared[:, 2].min()),
        "worst_few": float(np.abs(compared[~inside, 0]).max(initial=0.0)),
        "smallest": int(results.theory["ensemble"]["size"][0]),
        "largest": int(results.theory["ensemble"]["size"][-1]),
        "joint": max(HEADS),
        "simulated_gain": gained,
        "predicted_gain": float(one - many),
        "simulated_bar": 2 * error,
        "common_least": float(-common.mean(0).max()),
        "common_most": float(-common.mean(0).min()),
        "edge": max(edges),
    }


def figure(results: Results) -> Figure:
    widths = {width_of(n): d for n, d in results.theory.items() if n != "ensemble"}
    drawing, axes = figures.panels(2, max(len(widths), 3), height=4.9, width=figures.PAGE)
    with figures.style():
        for ax, (width, data) in zip(axes[0], widths.items(), strict=False):
            _errors(ax, data, results.simulation[f"width {width}"], width)
        axes[0, 0].set_ylabel("MSE at the best bandwidth")
        betas = widths[min(widths)]["beta"].values
        figures.key(axes[0, 0], [f"{b:g}" for b in betas], title="β", loc="lower left")
        _slopes(axes[1, 0], widths)
        _gains(axes[1, 1], results)
        _local(axes[1, 2], widths[1])
    figures.letters(axes.flat)
    return drawing


def _errors(ax: Axes, data: xr.Dataset, simulated: xr.Dataset, width: int) -> None:
    n = np.geomspace(1e2, 1e8, 49)
    # The targets that were simulated, not all.
    shared = data.isel(group=slice(int(data.attrs["shared_groups"]))).mean("group")
    lines = best(shared, n)[0]
    batches = simulated["mse"].values
    error = batches.std(0, ddof=1) / np.sqrt(len(batches))
    for i, line in enumerate(lines):
        color, marker = figures.PALETTE[i], figures.MARKERS[i]
        figures.theory(ax, n, line, color)
        value = batches.mean(0)[i]
        figures.simulated(ax, simulated["size"], value, error[i], color, marker)
    figures.log_axes(ax, x=True, y=True)
    ax.set(title=f"$d_k$ = {width}", xlabel="number of keys $n$", ylim=(1e-7, 1))


def _slopes(ax: Axes, widths: dict[int, xr.Dataset]) -> None:
    fine = np.linspace(0.4, 3.1, 200)
    for i, (width, data) in enumerate(widths.items()):
        color, marker = figures.PALETTE[5 + i], figures.MARKERS[5 + i]
        flat = np.minimum(fine, SATURATION)
        figures.theory(ax, fine, exponent(flat, width), color)
        beyond = fine >= SATURATION
        figures.theory(ax, fine[beyond], exponent(fine[beyond], width), color, ls="--", lw=0.8)
        fitted = slopes(data, FAR)
        figures.simulated(
            ax, data["beta"], fitted.mean(0), fitted.std(0, ddof=1) / np.sqrt(len(fitted)),
            color, marker,
        )  # fmt: skip
    labels = [f"{w}" for w in widths]
    figures.key(ax, labels, figures.PALETTE[5:], figures.MARKERS[5:], title="$d_k$", ncols=3)
    ax.set(xlabel="smoothness β", ylabel="slope of log MSE on log $n$", ylim=(-0.95, 0.02))


def _gains(ax: Axes, results: Results) -> None:
    """MSE of H heads over that of one, d_0 = 1, d_k = 2, β = 1."""
    data, joint = results.theory["width 1"], results.theory["ensemble"]
    n = np.geomspace(1e2, 1e16, 113)
    for heads, color in zip((*HEADS, np.inf), figures.PALETTE, strict=False):
        shared = data.sel(beta=[1.0]).isel(group=slice(int(data.attrs["shared_groups"])))
        shared = shared.mean("group")
        line = best(shared, n, heads, 1)[0][0] / best(shared, n, 1, 1)[0][0]
        figures.theory(ax, n, line, color)
        if np.isfinite(heads):
            ax.axhline(heads ** exponent(1.0, 2), color=color, lw=0.8, ls="--", zorder=1)
    batches = results.simulation["ensemble"]["mse"].values
    one, many = batches.mean(0)
    ratio = many / one
    # Linearised ratio of two means of the same batches.
    spread = (batches[:, 1] - ratio * batches[:, 0]) / one
    error = spread.std(0, ddof=1) / np.sqrt(len(spread))
    figures.simulated(ax, joint["size"], ratio, error, figures.PALETTE[1], figures.MARKERS[1])
    figures.log_axes(ax, x=True, y=True)
    ax.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
    ax.set(xlabel="number of keys $n$", ylabel="MSE of $H$ heads / of one", ylim=(0.08, 1.1))


def _local(ax: Axes, data: xr.Dataset) -> None:
    n = np.geomspace(1e2, 1e16, 57)
    for heads, color in zip((*HEADS, np.inf, 1), figures.PALETTE, strict=False):
        line = np.log(best(data.sel(beta=[1.0]).mean("group"), n, heads, 1)[0][0])
        figures.theory(ax, n, np.gradient(line, np.log(n)), color)
    for width in (1, 2):
        ax.axhline(exponent(1.0, width), color=figures.GREY, lw=0.7, ls="--", zorder=1)
        ax.annotate(
            f"$-2β/(2β+{width})$", (1e16, exponent(1.0, width)), xytext=(0, 3), ha="right",
            textcoords="offset points", fontsize=6.5, color=figures.GREY,
        )  # fmt: skip
    names = [f"{h}" for h in HEADS] + ["∞", "1"]
    figures.key(ax, names, markers=[""] * 4, title="$H$ (e, f)", loc="center right")
    figures.log_axes(ax, x=True)
    ax.set(xlabel="number of keys $n$", ylabel="local slope")
