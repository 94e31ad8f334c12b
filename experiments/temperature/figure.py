"""What keeping a temperature costs, why, and what theory of adaptive radii is worth."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import house
from sims.judgement.answers import Answer
from sims.study.results import Results

from .statistic import POWERS, SIMULATED, chosen, effects, matched, over, simulated

FAR = 256
"""Number of keys over that of the tuned context to which the figure goes."""
LINES = {
    "top-k": "top-k, k kept",
    "softmax": "softmax",
    "relu gap": "ReLU of the gap to the best key",
    "softmax, log n": "softmax, scores times log n",
    "": "α-entmax with ν = β",
    "sparsemax": "sparsemax (ν = 1)",
    "1.5-entmax": "1.5-entmax (ν = 2)",
}
"""Rules as the legend names them; without a name the power is the smoothness of the target."""


def figure(results: Results, answers: Sequence[Answer]) -> Figure:
    """The figure; lines and points are over the problems that the answers count."""
    drawing, axes = figures.mosaic(
        ("ab", "cd"),
        height=6.4,
        title="As the context grows, α-entmax with ν = β keeps its error; softmax falls behind",
    )
    law = results.predictions["law"]
    _losses(axes["a"], results, law)
    _powers(axes["b"], law)
    _exponents(axes["c"], law)
    _gaps(axes["d"], results)
    figures.letters(axes[k] for k in "abcd")
    return drawing


def _losses(ax: Axes, results: Results, law: xr.Dataset) -> None:
    """Median error over the least one by theory, its interval, and the simulated medians."""
    near = law.sel(ratio=slice(None, FAR))
    rules, beta, sample = law["rule"].values, law["smoothness"].values, simulated(results)
    ratio = (near["kept"] / near["best"]).values
    for ink, (rule, label) in zip(figures.PALETTE, LINES.items(), strict=False):
        style = "--" if rule in ("relu gap", "1.5-entmax") else "-"
        losses = chosen(ratio, rules, rule or matched(beta))
        losses = losses[np.isfinite(losses).all(1)]
        low, middle, high = _median(losses)
        ax.fill_between(near["ratio"], low, high, color=ink, alpha=0.25, lw=0)
        ax.plot(near["ratio"], middle, color=ink, label=label, ls=style, lw=1.2 if rule else 2.4)
        errors = chosen(sample, rules, rule or matched(beta[: len(sample)]))
        simulated_ratio = over(errors[:, 0], errors[:, 1]).mean(1)
        low, middle, high = _median(simulated_ratio[np.isfinite(simulated_ratio), None])
        ax.errorbar(SIMULATED, middle, [middle - low, high - middle], fmt="o", ms=3, color=ink)
    figures.log_axes(ax, x=True, y=True)
    figures.ticks(ax.xaxis, near["ratio"].values.astype(int))
    figures.ticks(ax.yaxis, (1, 2, 5, 10, 20, 50))
    ax.legend(loc="upper left", fontsize="x-small")
    ax.set(
        xlabel="number of keys / number at tuning",
        ylabel="error at the kept parameter / least error",
        title="Softmax and top-k lose, ν = β does not",
    )


def _median(values: np.ndarray) -> np.ndarray:
    """A 95 % interval and the median over problems (N, …): lower end, median, upper end."""
    count = len(values)
    ends = np.array([0.5 - 0.98 / count**0.5, 0.5, 0.5 + 0.98 / count**0.5]).clip(0, 1)
    return np.asarray(np.quantile(values, ends, axis=0))


def _powers(ax: Axes, law: xr.Dataset) -> None:
    """Losses at the largest context by how much the power exceeds the smoothness."""
    here = law.sel(ratio=FAR)
    loss = (here["kept"] / here["best"]).to_series().unstack("rule")
    beta = law["smoothness"].values
    apart = {rule: nu - beta for rule, nu in POWERS.items()} | {"softmax": np.inf + beta}
    parts = [pd.DataFrame({"apart": d, "loss": loss[rule].values}) for rule, d in apart.items()]
    frame = pd.concat(parts).dropna().sort_values("apart")
    frame["apart"] = frame["apart"].map("{:g}".format).replace("inf", "softmax")
    sns.boxplot(
        frame, x="apart", y="loss", ax=ax, color=figures.PALETTE[0], fliersize=1.5, linewidth=0.8
    )
    figures.log_axes(ax, y=True)
    figures.ticks(ax.yaxis, (1, 2, 5, 10, 20, 50))
    ax.set(
        xlabel="power ν less smoothness β",
        ylabel=f"error / least error at {FAR} times",
        title="The farther ν from β, the more is lost",
    )


def _exponents(ax: Axes, law: xr.Dataset) -> None:
    """Exponents of the best temperature against the stated ones, a point a problem."""
    far = law.sel(ratio=slice(SIMULATED, None))
    beta, nu, width = (law[k].values for k in ("smoothness", "power", "width"))
    best = np.log(chosen(far["tuned"].values, law["rule"].values, matched(nu)))
    x = np.log(far["ratio"].values)
    fitted = (best - best.mean(1, keepdims=True)) @ (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    stated, line = 2 * (beta / nu - 1) / (2 * beta + width), np.array([-0.5, 0.5])
    tolerance = house.TOLERANCES["slope"]
    ax.fill_between(line, line - tolerance, line + tolerance, color=figures.BAND, zorder=0)
    figures.theory(ax, line, line, zorder=1)
    jitter = np.random.default_rng(0).uniform(-0.006, 0.006, len(nu))
    colours = dict(zip(POWERS.values(), figures.PALETTE, strict=False))
    sns.scatterplot(x=stated + jitter, y=fitted, hue=nu, palette=colours, s=9, linewidth=0, ax=ax)
    ax.legend(title="ν", loc="upper left")
    ax.set(
        xlabel="stated exponent 2(β − ν)/(ν(2β + d))",
        ylabel="exponent of the best temperature",
        title=f"Best temperatures stay where ν = β (grey: ± {tolerance:g})",
    )


def _gaps(ax: Axes, results: Results) -> None:
    """Terms of two averaged heads over first-order theory, less 1, a point a problem."""
    effect, heads = effects(results), results.predictions["heads"]
    signal = heads["signal"].sel(theory="held") / heads["signal"].sel(theory="adaptive") - 1
    fixed_radii = np.where(heads["in_range"].astype(bool), signal, np.nan)
    rows = {
        "noise variance,\nsimulated": effect["noise"].value,
        "signal variance,\nsimulated": effect["signal"].value,
        "signal variance,\nradii held": fixed_radii,
    }
    frame = (100 * pd.DataFrame(rows)).melt(var_name="term", value_name="gap").dropna()
    tolerance = 100 * house.TOLERANCES["roads"]
    ax.axvspan(-tolerance, tolerance, color=figures.BAND, zorder=0)
    sns.stripplot(frame, x="gap", y="term", ax=ax, color=figures.PALETTE[0], size=2.5, alpha=0.6)
    ax.set(
        xlabel="over first-order theory of adaptive radii, less 1 (%)",
        ylabel="",
        title=f"Theory of adaptive radii holds (grey: ± {tolerance:g} %)",
    )
