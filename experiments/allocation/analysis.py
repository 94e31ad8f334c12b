"""The best split of a budget: where it is, by both roads, and how it moves with n and D."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from sims import figures
from sims.judgement import (
    Evidence,
    Finding,
    Verdict,
    claim,
    equivalence,
    near_optimal,
    optimal_set,
    ordering,
)
from sims.results import Results, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sims.judgement.scaling import Comparison

TEMPERATURES = {
    "fixed": "fixed temperature",
    "transformer": "Transformer's temperature",
    "tuned": "re-tuned bandwidth",
}
BUDGET = 24
"""D of the curves d_k*(n)."""
LEAST, SIZES = 16, (1e3, 1e4, 1e6)
"""The smallest budget of the claims on theory alone, and n of those on H*(D)."""
Case = tuple[str, int, int]
"""Family of targets, n, budget."""


class Splits:
    """The simulated grid: candidates of every case, their batches, and what theory says."""

    def __init__(self, results: Results) -> None:
        self.batches, self.theory = results.simulation["splits"]["mse"], results.theory["splits"]
        self.count = results.batches("splits")

    def cases(self) -> Iterator[Case]:
        return product(*(self.theory[k].values.tolist() for k in ("family", "n", "budget")))

    def rungs(self, temperature: str) -> list[int]:
        """Places on the ladder that the temperature may take."""
        last = self.theory.sizes["rung"] - 1
        one = {"fixed": int(self.theory.attrs["fixed"]), "transformer": last}
        return list(range(last)) if temperature == "tuned" else [one[temperature]]

    def candidates(self, temperature: str, budget: int) -> list[tuple[int, int]]:
        """Pairs (width, rung)."""
        widths = [w for w in self.theory["width"].values.tolist() if budget % w == 0]
        return list(product(widths, self.rungs(temperature)))

    def simulated(self, case: Case, chosen: list[tuple[int, int]]) -> np.ndarray:
        """Errors (batch, candidate)."""
        at = self.batches.sel(family=case[0], n=case[1], budget=case[2])
        rows = [at.sel(width=w).isel(rung=r).values for w, r in chosen]
        return np.stack(rows, axis=-1)

    def predicted(self, case: Case, chosen: list[tuple[int, int]]) -> np.ndarray:
        """Theory's errors (candidate,); infinite where n_eff is too small for it."""
        at = self.theory.sel(n=case[1])
        mse = at["mse"].sel(family=case[0], budget=case[2])
        return np.array(
            [
                float(mse.sel(width=w).isel(rung=r))
                if float(at["n_eff"].sel(width=w).isel(rung=r)) >= self.theory.attrs["least_n_eff"]
                else np.inf
                for w, r in chosen
            ]
        )

    def choice(self, case: Case, temperature: str) -> tuple[np.ndarray, int, list[int]]:
        """Errors (batch, candidate), the place of theory's best, and the candidates' widths."""
        chosen = self.candidates(temperature, case[2])
        best = int(np.argmin(self.predicted(case, chosen)))
        return self.simulated(case, chosen), best, [w for w, _ in chosen]


def judge(results: Results, experiment: Any) -> list[Verdict]:
    splits = Splits(results)
    surface, optimum = (splits.theory[k] for k in ("surface", "optimum"))
    large = surface["dense_budget"].values[surface["dense_budget"].values >= LEAST]
    settings = experiment.settings | experiment.settings.get(results.fidelity, {})
    sampled = {"batches": splits.count, "fixed": True, "replicates": results.replicates}
    exact = {"batches": np.inf, "fixed": True, "replicates": 0}
    verdicts = []

    def said(id: str, regime: str, decide: Any, *values: Any, **options: Any) -> None:
        wanted = claim(experiment, id, regime)
        if decide in (equivalence, ordering):
            values, options = (Evidence(*values, **options),), {}
        found = decide(*values, margin=wanted.margin, level=wanted.level, **options)
        verdicts.append(Verdict.of(wanted, results.experiment, found))

    for name in ("fixed", "tuned"):
        words, depth = TEMPERATURES[name], depths(surface.sel(temperature=name, dense_budget=large))
        said("allocation", f"{words}, theory", ordering, depth, 0 * depth, **exact)
        said("allocation", f"{words}, simulation", ordering, *interior(splits, name), **sampled)
        gaps = np.array([s - 1 for s in slopes(optimum.sel(dense_budget=large), name).values()])
        said("heads-linear", words, equivalence, gaps, 0 * gaps, **exact)
    for name, words in TEMPERATURES.items():
        choices = [splits.choice(case, name)[:2] for case in splits.cases()]
        said("allocation", f"both roads, {words}", near_optimal, choices,
             replicates=results.replicates)  # fmt: skip
    said("allocation", "error by both roads", equivalence, *agreement(splits), **sampled)
    compared = {regime: laws(optimum, settings, *at) for regime, at in LAWS.items()}
    for regime, found in compared.items():
        said("dk-log", regime, fitted, found)
    tuned = compared["re-tuned bandwidth"]
    said("dk-log", "re-tuned bandwidth, square root", fitted, tuned, exponent=0.5)
    grown = growth(splits)
    gaps = np.transpose([mean_and_error(found - known) for found, known in grown.values()])
    said("dk-log", "both roads, growth", equivalence, *gaps, **sampled)
    others = [(grown["fixed", f, D][0], grown[k, f, D][0]) for k, f, D in grown if k != "fixed"]
    more = np.transpose([mean_and_error(fixed - other) for fixed, other in others])
    said("dk-log", "simulation, growth at a fixed temperature", ordering, *more, **sampled)
    hot = optimum.sel(temperature="transformer", family="smooth", dense_budget=BUDGET)
    late = [float(hot.sel(dense_n=n, method="nearest")) for n in (1e5, 1e8)]
    said("dk-log", TEMPERATURES["transformer"], ordering, late[1] / late[0] - 1, 0.0, **exact)
    return verdicts


LAWS = {
    TEMPERATURES[name] + (", rough target" if family == "rough" else ""): (name, family)
    for family in ("smooth", "rough")
    for name in ("fixed", "tuned")
}
"""Regimes in which the growth of d_k* is compared with laws: temperature and family of targets."""


def depths(mse: xr.DataArray) -> np.ndarray:
    """Error at either end of the admissible widths over the least one between them, less 1."""
    found = []
    for row in mse.values.reshape(-1, mse.sizes["dense_width"]):
        known = row[~np.isnan(row)]
        # Fewer than three widths have no inside: NaN leaves the claim open.
        least = known[1:-1].min() if len(known) > 2 else np.nan
        found.append((known[[0, -1]] if known.size else row[:2]) / least - 1)
    return np.concatenate(found)


def interior(splits: Splits, temperature: str) -> np.ndarray:
    """Error at the narrowest and the widest heads over that at theory's best split, less 1.

    The ends at every rung that the temperature may take, so that none is chosen by its own noise.
    """
    found = []
    for case in splits.cases():
        values, at, widths = splits.choice(case, temperature)
        for place in np.flatnonzero(np.isin(widths, (min(widths), max(widths)))):
            ratio = values[:, place].mean() / values[:, at].mean()
            residual = (values[:, place] - ratio * values[:, at]) / values[:, at].mean()
            found.append((ratio - 1, mean_and_error(residual)[1]))
    return np.transpose(found)


def vertex(splits: Splits, case: Case, temperature: str) -> tuple[np.ndarray, float]:
    """d_k* as a real number, simulated and by theory: pseudo-values (batch,), and one number.

    The vertex of the parabola of log MSE on log width through theory's best width and its two
    neighbours, each at theory's best bandwidth, so that both roads are asked the same.
    """
    chosen = splits.candidates(temperature, case[2])
    predicted = splits.predicted(case, chosen)
    best: dict[int, int] = {}
    for place in np.argsort(-predicted)[np.isinf(predicted).sum() :]:
        best[chosen[place][0]] = int(place)
    widths, rows = np.transpose(sorted(best.items()))
    middle = np.clip(np.argmin(predicted[rows]), 1, len(rows) - 2)
    near = slice(middle - 1, middle + 2)
    x, values = np.log(widths[near]), splits.simulated(case, chosen)[:, rows[near]]

    def lowest(mse: np.ndarray) -> np.ndarray:
        bend, slope, _ = np.polyfit(x, np.log(mse).T, 2)
        return np.exp(-slope / (2 * bend))

    count, predicted = len(values), predicted[rows[near]]
    left_out = lowest((values.sum(0) - values) / (count - 1))
    whole, theory = lowest(np.stack([values.mean(0), predicted]))
    return count * whole - (count - 1) * left_out, float(theory)


def growth(splits: Splits) -> dict[tuple[str, str, int], tuple[np.ndarray, float]]:
    """:func:`vertex` at the largest n less that at the smallest, by temperature, family, budget."""
    sizes, out = splits.theory["n"].values.tolist(), {}
    for name, (family, n, budget) in product(TEMPERATURES, splits.cases()):
        if n == sizes[0]:
            first, last = (vertex(splits, (family, k, budget), name) for k in (n, sizes[-1]))
            out[name, family, budget] = last[0] - first[0], last[1] - first[1]
    return out


def agreement(splits: Splits) -> tuple[np.ndarray, np.ndarray]:
    """Simulated error over theory's, less 1, with its error, at every split with n_eff ≥ 50.

    Which points these are is theory's to say: where the simulation has no number, this is NaN.
    """
    asked = (splits.theory["n_eff"] >= 50) & (splits.theory["budget"] % splits.theory["width"] == 0)
    ratio = splits.batches / splits.theory["mse"]
    effect = ratio.mean("batch", skipna=False) - 1
    error = ratio.std("batch", ddof=1, skipna=False) / np.sqrt(splits.count)
    known = asked.broadcast_like(effect).transpose(*effect.dims).values
    return effect.values[known], error.values[known]


def laws(optimum: xr.DataArray, settings: Any, name: str, family: str) -> Comparison | str:
    """The laws of d_k*(n) compared at some n of the range, or why they are not."""
    asked, span = settings["laws"], settings["decades"]
    if asked is None:
        return "laws are not fitted at this fidelity"
    # Drawing does without JAX.
    from sims.judgement.scaling import compare

    count = (span["high"] - span["low"]) * asked["per_decade"] + 1
    n = np.logspace(span["low"], span["high"], count)
    found = optimum.sel(temperature=name, family=family, dense_budget=BUDGET)
    width = found.sel(dense_n=n, method="nearest").values
    missing = int(np.isnan(width).sum())
    if missing:
        return f"no minimum inside theory's range at {missing} of {len(n)} points"
    return compare(n, width, np.full(len(n), asked["error"]), scatter=asked["scatter"])


def fitted(compared: Any, *, margin: float, level: float, exponent: Any = None) -> Finding:
    """Whether the logarithm predicts best, or whether the power of log n is ``exponent``."""
    if isinstance(compared, str):
        return Finding("inconclusive", None, None, margin, level, 0, compared)
    from sims.judgement.scaling import exponent_claim, law_claim

    if exponent is None:
        return law_claim(compared, "log", level=level, replicates=0)
    law = compared.fits["log_power"]
    return exponent_claim(law, expected=exponent, margin=margin, level=level, replicates=0)


def slopes(optimum: xr.DataArray, name: str) -> dict[tuple[str, float], float]:
    """Slope of log H* on log D, by family and n; NaN where a minimum is missing."""
    out = {}
    for family, n in product(optimum["family"].values.tolist(), SIZES):
        width = optimum.sel(temperature=name, family=family).sel(dense_n=n, method="nearest")
        size, heads = np.log(width["dense_budget"].values), -np.log(width.values)
        centred = size - size.mean()
        out[family, n] = 1 + float(centred @ heads / (centred @ centred))
    return out


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    splits = Splits(results)
    theory = splits.theory.sel(family="smooth")
    optimum = theory["optimum"].sel(dense_budget=BUDGET)
    fixed = theory["surface"].sel(temperature="fixed", dense_budget=BUDGET)
    early = round(float(optimum.sel(temperature="fixed").sel(dense_n=1e4, method="nearest")))
    late = fixed.sel(dense_n=1e8, method="nearest")
    sizes = splits.theory["n"].values.tolist()
    found = {"flat": float(late.sel(dense_width=early) / late.min() - 1), "sizes": sizes}
    for name in TEMPERATURES:
        width = optimum.sel(temperature=name).values
        found |= {f"{name}_first": float(width[0]), f"{name}_last": float(width[-1])}
        grown = growth(splits)[name, "smooth", BUDGET]
        found |= {f"{name}_simulated": mean_and_error(grown[0])[0], f"{name}_grown": grown[1]}
    choices = [splits.choice(case, name)[:2] for name in TEMPERATURES for case in splits.cases()]
    inside = sum(bool(optimal_set(values, 0.95)[at]) for values, at in choices)
    found |= {"cases": len(choices), "inside": inside}
    n = optimum["dense_n"].values
    found["efold"] = (found["fixed_last"] - found["fixed_first"]) / float(np.log(n[-1] / n[0]))
    return found


COLORS = dict(zip(TEMPERATURES, figures.PALETTE, strict=False))
SHAPES = dict(zip(TEMPERATURES, figures.MARKERS, strict=False))
SURFACES = (("fixed", "smooth", BUDGET), ("tuned", "smooth", BUDGET), ("fixed", "rough", 512))
"""Temperature, targets and budget of the surfaces drawn."""


def figure(results: Results) -> Figure:
    """Errors of the splits, surfaces over n, d_k*(n) and H*(D)."""
    splits = Splits(results)
    drawing, axes = figures.panels(2, 3, height=5.2, width=figures.PAGE)
    with figures.style():
        _errors(axes[0, 0], splits)
        for ax, at in zip((axes[0, 1], axes[0, 2], axes[1, 0]), SURFACES, strict=True):
            image = _surface(ax, splits, *at)
        bar = drawing.colorbar(image, ax=axes[0, 2], ticks=[-5, -4, -3, -2, -1, 0])
        bar.ax.set_yticklabels(["0.001 %", "0.01 %", "0.1 %", "1 %", "10 %", "100 %"])
        bar.set_label("excess over the best MSE (b–d)")
        _widths(axes[1, 1], splits)
        _heads(axes[1, 2], splits)
    figures.letters(axes.flat)
    return drawing


def _errors(ax: Axes, splits: Splits) -> None:
    """Error of every split at the fixed temperature."""
    sizes = splits.theory["n"].values.tolist()
    dense = splits.theory["surface"].sel(temperature="fixed", family="smooth", dense_budget=BUDGET)
    for i, n in enumerate(sizes):
        color, marker = figures.PALETTE[3 + i], figures.MARKERS[3 + i]
        line = dense.sel(dense_n=n)
        figures.theory(ax, line["dense_width"], line, color)
        case = ("smooth", n, BUDGET)
        chosen = splits.candidates("fixed", BUDGET)
        values = splits.simulated(case, chosen)
        error = values.std(0, ddof=1) / np.sqrt(splits.count)
        figures.simulated(ax, [w for w, _ in chosen], values.mean(0), error, color, marker)
    figures.log_axes(ax, x=True, y=True, plain=True)
    widths = splits.theory["width"].values.tolist()
    ax.set_xticks(widths, [f"{w}\n{BUDGET // w}" for w in widths], fontsize=6)
    ax.set_xticks([], minor=True)
    ax.set_yticks([0.05, 0.1, 0.2, 0.5, 1.0], ["0.05", "0.1", "0.2", "0.5", "1"])
    ax.set(xlabel="head width $d_k$\nnumber of heads $H = 24/d_k$", ylabel="MSE")
    figures.key(
        ax, [f"n = {n}" for n in sizes], figures.PALETTE[3:], figures.MARKERS[3:], loc="upper left"
    )


def _surface(ax: Axes, splits: Splits, name: str, family: str, budget: int) -> Any:
    """How much worse than the best every width is, over n."""
    found = splits.theory.sel(temperature=name, family=family, dense_budget=budget)
    n, widths = found["dense_n"].values, found["dense_width"].values
    worse = (found["surface"] / found["least"] - 1).transpose("dense_width", "dense_n").values
    with np.errstate(invalid="ignore"):
        image = ax.pcolormesh(
            n, widths, np.log10(np.maximum(worse, 1e-5)), cmap="viridis_r", vmin=-5, vmax=0.5,
            shading="nearest", rasterized=True,
        )  # fmt: skip
    top = widths[-1] + 0.5
    beyond = np.where(np.isnan(worse).any(0), (~np.isnan(worse)).sum(0) + 0.5, top)
    if (beyond < top).any():
        ax.fill_between(
            n, beyond, top, step="mid", facecolor="none", edgecolor="0.7", hatch="////", lw=0
        )
        ax.text(1.7e2, widths[-1] - 1, "$n_{\\rm eff}$ < 10", va="top", fontsize=7,
                bbox={"color": "white", "pad": 1.5})  # fmt: skip
    figures.theory(ax, n, found["optimum"], "white", lw=1.8)
    ax.set_yticks([1, 5, 10, 15, 20])
    figures.log_axes(ax, x=True)
    ax.set_xticks([1e2, 1e4, 1e6, 1e8])
    ax.set(xlabel="number of keys $n$", ylabel="head width $d_k$")
    ax.set_title(f"{TEMPERATURES[name]},\n{family} target, D = {budget}", fontsize=7)
    return image


def _widths(ax: Axes, splits: Splits) -> None:
    """Best width against n."""
    optimum = splits.theory["optimum"].sel(dense_budget=BUDGET)
    for name in TEMPERATURES:
        for family, dash in (("smooth", "-"), ("rough", (0, (4, 2)))):
            line = optimum.sel(temperature=name, family=family)
            figures.theory(ax, line["dense_n"], line, COLORS[name], linestyle=dash)
        for n in splits.theory["n"].values.tolist():
            value, error = mean_and_error(vertex(splits, ("smooth", n, BUDGET), name)[0])
            figures.simulated(ax, [n], [value], [error], COLORS[name], SHAPES[name])
    figures.log_axes(ax, x=True)
    ax.set_xticks([1e2, 1e4, 1e6, 1e8])
    ax.set(xlabel="number of keys $n$", ylabel="best head width $d_k^*$", ylim=(0, 19),
           yticks=[0, 5, 10, 15])  # fmt: skip
    _legend(ax, list(TEMPERATURES))


def _heads(ax: Axes, splits: Splits) -> None:
    """Best number of heads against D."""
    optimum = splits.theory["optimum"].sel(family="smooth")
    shown, n = ("fixed", "tuned"), splits.theory["n"].values.tolist()[-2]
    for name in shown:
        for size, dash in ((n, "-"), (1e6, (0, (1, 1)))):
            line = optimum.sel(temperature=name).sel(dense_n=size, method="nearest")
            figures.theory(ax, line["dense_budget"], line["dense_budget"] / line, COLORS[name],
                           linestyle=dash)  # fmt: skip
        for budget in splits.theory["budget"].values.tolist():
            width, error = mean_and_error(vertex(splits, ("smooth", n, budget), name)[0])
            figures.simulated(ax, [budget], [budget / width], [budget * error / width**2],
                              COLORS[name], SHAPES[name])  # fmt: skip
    D = optimum["dense_budget"].values
    figures.theory(ax, D, D, figures.GREY, lw=0.7)
    ax.annotate("$H = D$", (48, 48), xytext=(-4, 3), textcoords="offset points", ha="right",
                fontsize=7, color=figures.GREY)  # fmt: skip
    figures.log_axes(ax, x=True, y=True, plain=True)
    ax.set_xticks(D, ["" if d in (12, 24) else str(d) for d in D])
    ax.set_xticks([], minor=True)
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.set(xlabel="budget $D$", ylabel="best number of heads $H^*$", ylim=(1, 3000))
    _legend(ax, list(shown))


def _legend(ax: Axes, names: list[str]) -> None:
    figures.key(
        ax, [TEMPERATURES[k] for k in names], [COLORS[k] for k in names],
        [SHAPES[k] for k in names], loc="upper left",
    )  # fmt: skip
