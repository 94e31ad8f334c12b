"""The best split of a budget: where it is, by both roads, and how it moves with n and D."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import xarray as xr

from sims.effects import Effect, Families, of_batches
from sims.estimates import jackknife, ratio
from sims.study.results import Results

POINT = "splits"
TEMPERATURES = ("fixed", "transformer", "tuned")
"""The bandwidth is fixed, has b² in proportion to √d_k, or is re-tuned at every n."""
TARGETS = ("smooth", "rough")
BUDGET = 24
"""D of the curves d_k*(n)."""
LEAST = 16
"""The smallest budget of the slopes of H* on D."""
SIZES = (1e3, 1e4, 1e6)
"""n of those slopes."""
LATE = (1e5, 1e8)
"""n between which growth at the Transformer's temperature should be seen."""
Case = tuple[str, int, int]
"""Family of targets, n, budget."""


def effects(results: Results) -> Families:
    """Families of effects, each for the temperature (and targets) in its name."""
    splits = Splits(results)
    surface, optimum = splits.theory["surface"], splits.theory["optimum"]
    grown = growth(splits)
    families: Families = {
        "error": agreement(splits),
        "growth": [
            of_batches(", ".join(map(str, key)), simulated - predicted, POINT)
            for key, (simulated, predicted) in grown.items()
        ],
        "growth, fixed less others": [
            of_batches(", ".join(map(str, key)), grown["fixed", *key[1:]][0] - other, POINT)
            for key, (other, _) in grown.items()
            if key[0] != "fixed"
        ],
        "late growth, transformer": [late_growth(optimum)],
    }
    for name in TEMPERATURES:
        families[f"depth, {name}"] = depths(surface.sel(temperature=name))
        families[f"simulated depth, {name}"] = simulated_depths(splits, name)
        families[f"choice, {name}"] = choices(splits, name)
        families[f"slope, {name}"] = slopes(optimum.sel(temperature=name))
        for target in TARGETS:
            widths = optimum.sel(temperature=name, family=target, dense_budget=BUDGET)
            families[f"widths, {name}, {target}"] = widths_of_law(widths, results)
    return families


class Splits:
    """The simulated grid: candidates of every case, their batches, and what theory says."""

    def __init__(self, results: Results) -> None:
        # Pseudo-values are differences of large numbers: not in the float32 of the simulation.
        self.batches = results.estimates[POINT]["mse"].astype(float)
        self.theory = results.prediction(POINT)

    def cases(self) -> Iterator[Case]:
        """All pairs of targets, n and budget that were simulated."""
        return product(*(self.theory[k].values.tolist() for k in ("family", "n", "budget")))

    def rungs(self, temperature: str) -> list[int]:
        """Places on the ladder that the temperature may take."""
        last = self.theory.sizes["rung"] - 1
        one = {"fixed": int(self.theory.attrs["fixed"]), "transformer": last}
        return list(range(last)) if temperature == "tuned" else [one[temperature]]

    def candidates(self, case: Case, temperature: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Widths (k,), simulated errors (batch, k) and theory's (k,), a candidate a width and rung.

        Theory's error is infinite where n_eff is too small for it.
        """
        family, n, budget = case
        widths = self.theory["width"].values
        chosen = {"n": n, "width": widths[budget % widths == 0]}
        error, of_case = {"family": family, "budget": budget}, {"rung": self.rungs(temperature)}
        law = self.theory.sel(chosen).isel(of_case)
        known = law["n_eff"] >= self.theory.attrs["least_n_eff"]
        predicted = law["mse"].sel(error).where(known, np.inf).transpose("width", "rung").values
        values = self.batches.sel(chosen | error).isel(of_case).transpose("batch", "width", "rung")
        own = np.repeat(law["width"].values, predicted.shape[1])
        return own, values.values.reshape(len(values), -1), predicted.ravel()


def choices(splits: Splits, temperature: str) -> list[Effect]:
    """The candidates of every case, theory's best among them."""
    out = []
    for case in splits.cases():
        _, values, predicted = splits.candidates(case, temperature)
        best = int(np.argmin(predicted))
        out.append(Effect(label(case), points=(POINT,), values=values, best=best))
    return out


def label(case: tuple[str, float, int]) -> str:
    """A case in words."""
    return f"{case[0]} target, n = {case[1]:.4g}, D = {case[2]}"


def depths(surface: xr.DataArray) -> list[Effect]:
    """Theory's error at either end of the admissible widths over the least between, less 1."""
    surface = surface.transpose("family", "dense_n", "dense_budget", "dense_width")
    cases = product(*(surface[dim].values.tolist() for dim in surface.dims[:-1]))
    out = []
    for case, row in zip(cases, surface.values.reshape(-1, surface.shape[-1]), strict=True):
        known = row[~np.isnan(row)]
        # Fewer than three widths have no inside: NaN leaves the claim open.
        least = known[1:-1].min() if len(known) > 2 else np.nan
        ends = (known[[0, -1]] if known.size else row[:2]) / least - 1
        out += [
            exact(f"{label(case)}, {end}", value, budget=case[2])
            for end, value in zip(("narrowest", "widest"), ends, strict=True)
        ]
    return out


def exact(name: str, value: float, **at: float) -> Effect:
    """An effect of theory alone, without sampling."""
    return Effect(name, float(value), replicates=0, at=at)


def simulated_depths(splits: Splits, temperature: str) -> list[Effect]:
    """Error at the narrowest and the widest heads over that at theory's best split, less 1.

    The ends at every rung that the temperature may take, so that none is chosen by its own noise.
    """
    out = []
    for case in splits.cases():
        widths, values, predicted = splits.candidates(case, temperature)
        best = values[:, np.argmin(predicted)]
        for place in np.flatnonzero(np.isin(widths, (min(widths), max(widths)))):
            gap = ratio(values[:, place], best) - 1
            out.append(of_batches(f"{label(case)}, width {widths[place]}", gap, POINT))
    return out


def vertex(splits: Splits, case: Case, temperature: str) -> tuple[np.ndarray, float]:
    """d_k* as a real number, simulated and by theory: pseudo-values (batch,), and one number.

    The vertex of the parabola of log MSE on log width through theory's best width and its two
    neighbours, each at theory's best bandwidth, so that both roads answer the same question.
    """
    every, values, predicted = splits.candidates(case, temperature)
    # Of each width its best rung: the last of those that come with ever smaller errors.
    order = np.argsort(-predicted)[np.isinf(predicted).sum() :]
    widths, rows = np.transpose(sorted(dict(zip(every[order], order, strict=True)).items()))
    middle = np.clip(np.argmin(predicted[rows]), 1, len(rows) - 2)
    near = slice(middle - 1, middle + 2)
    x = np.log(widths[near])

    def lowest(mse: np.ndarray) -> np.ndarray:
        bend, slope, _ = np.polyfit(x, np.log(mse).T, 2)
        return np.asarray(np.exp(-slope / (2 * bend)))

    simulated = jackknife({"mse": values[:, rows[near]]}, lambda means: lowest(means["mse"]))
    return simulated, float(lowest(predicted[rows[near]]))


def growth(splits: Splits) -> dict[tuple[str, str, int], tuple[np.ndarray, float]]:
    """:func:`vertex` at the largest n less that at the smallest, by temperature, family, budget."""
    sizes, out = splits.theory["n"].values.tolist(), {}
    for name, (family, n, budget) in product(TEMPERATURES, splits.cases()):
        if n == sizes[0]:
            first, last = (vertex(splits, (family, k, budget), name) for k in (n, sizes[-1]))
            out[name, family, budget] = last[0] - first[0], last[1] - first[1]
    return out


def late_growth(optimum: xr.DataArray) -> Effect:
    """Theory's d_k* at the later n over that at the earlier, less 1."""
    hot = optimum.sel(temperature="transformer", family="smooth", dense_budget=BUDGET)
    early, late = (float(hot.sel(dense_n=n, method="nearest")) for n in LATE)
    return exact("growth", late / early - 1)


def agreement(splits: Splits) -> list[Effect]:
    """Simulated error over theory's, less 1, at every split, with its n_eff.

    Which splits these are is theory's to say: where the simulation has no number, this is NaN.
    """
    gaps = (splits.batches / splits.theory["mse"] - 1).transpose(*splits.theory["mse"].dims, ...)
    out = []
    for place in np.ndindex(gaps.shape[:-1]):
        gap = gaps[place]
        n, budget, width = (int(gap[k]) for k in ("n", "budget", "width"))
        if budget % width == 0:
            n_eff = float(splits.theory["n_eff"].sel(n=n, width=width)[place[-1]])
            name = f"{label((str(gap['family'].values), n, budget))}, width {width}"
            out.append(of_batches(name, gap.values, POINT, at={"n_eff": n_eff}))
    return out


def widths_of_law(widths: xr.DataArray, results: Results) -> list[Effect]:
    """Theory's d_k* at some n of the range, for laws to be fitted to; none where they are not."""
    chosen, span = results.settings["laws"], results.settings["decades"]
    if chosen is None:
        return []
    count = (span["high"] - span["low"]) * chosen["per_decade"] + 1
    return [
        Effect(
            f"n = {n:.3g}", float(widths.sel(dense_n=n, method="nearest")), chosen["error"],
            x=float(n), replicates=0,
        )
        for n in np.logspace(span["low"], span["high"], count)
    ]  # fmt: skip


def slopes(optimum: xr.DataArray) -> list[Effect]:
    """Theory's slope of log H* on log D, less 1, by family and n; NaN if a minimum is missing."""
    out = []
    for family, n in product(TARGETS, SIZES):
        width = optimum.sel(family=family).sel(dense_n=n, method="nearest")
        width = width.sel(dense_budget=width["dense_budget"] >= LEAST)
        size, heads = np.log(width["dense_budget"].values), -np.log(width.values)
        centred = size - size.mean()
        out.append(exact(f"{family} target, n = {n:g}", centred @ heads / (centred @ centred)))
    return out
