"""The best split of a budget: where it is, by both roads, and how it moves with n and D."""

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
import xarray as xr

from sims.effects import Effect, Families, of_batches
from sims.estimates import jackknife, ratio
from sims.study.results import Results

from .curves import STEPS, TEMPERATURES, families_of_theory
from .regimes import checked, labelled, pooled_heads

Case = tuple[str, int, int]
"""Family of targets, n, budget."""
Candidates = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Widths (k,), simulated errors (batch, k) and theory's (k,)."""


def effects(results: Results) -> Families:
    """Families of effects, each for the point and the temperature (and targets) in its name.

    A point is a geometry, views or blocks: under the gaussian kernel or, after "softmax", that.
    """
    families = families_of_theory(results)
    for point in checked(results.settings):
        splits = Splits(results, point)
        families[f"error, {point}"] = agreement(splits, "mse")
        families[f"noise, {point}"] = agreement(splits, "noise")
        for name in TEMPERATURES:
            at = f"{point}, {name}"
            families[f"simulated depth, {at}"] = simulated_depths(splits, name)
            families[f"choice, {at}"] = choices(splits, name)
            if splits.settings["geometry"] == "views":
                for what in STEPS:
                    families[f"simulated step of {what}, {at}"] = steps(splits, what, name)
        families |= {f"{k}, {point}": v for k, v in movements(splits).items()}
    return families


class Splits:
    """The simulated grid: candidates of every case, their batches, and what theory says."""

    def __init__(self, results: Results, point: str) -> None:
        self.point = point
        self.settings = checked(results.settings)[point]
        self.theory = labelled(results.prediction(point), self.settings)
        self._candidates: dict[tuple[Case, str], Candidates] = {}
        noise_sd = self.settings["noise_sd"]
        # Pseudo-values are differences of large numbers: not in the float32 of the simulation.
        data = labelled(results.estimates[point], self.settings).astype(float)
        self.batches = xr.Dataset(
            {
                "mse": self._whole(
                    data["head"] + noise_sd**2 * data["head_noise"],
                    data["pool"] + noise_sd**2 * data["pool_noise"],
                ),
                "noise": self._whole(data["head_noise"], data["pool_noise"]),
            }
        )

    def _whole(self, head: xr.DataArray, pool: xr.DataArray) -> xr.DataArray:
        """The square of the average of ``H = D/d_k`` heads from those of one head and of a pool.

        Heads are exchangeable: A of a head and B of a pair make ``A/k + (1 − 1/k) B`` of k.
        """
        widths, parts = head["width"].values, []
        for budget in self.theory["budget"].values.tolist():
            group = min(g for g in head["group"].values.tolist() if g >= budget)
            own, pooled = head.sel(group=group, drop=True), pool.sel(group=group, drop=True)
            count = np.array(
                [pooled_heads(group, w, self.settings["simulated"]["heads"]) for w in widths], float
            )
            k = xr.DataArray(np.where(count > 1, count, np.nan), {"width": widths}, ("width",))
            heads = xr.DataArray(budget / widths, {"width": widths}, ("width",))
            pair = (k * pooled - own) / (k - 1)
            whole = pair + (own - pair) / heads
            parts.append(xr.where(heads == 1, own, whole).where(heads >= 1))
        return xr.concat(parts, self.theory["budget"])

    def cases(self) -> Iterator[Case]:
        """All triples of targets, n and budget that were simulated."""
        return product(*(self.theory[k].values.tolist() for k in ("family", "n", "budget")))

    def rungs(self, temperature: str) -> list[int]:
        """Places on the ladder that the temperature may take."""
        last = self.theory.sizes["rung"] - 1
        one = {"fixed": int(self.theory.attrs["fixed"]), "transformer": last}
        return list(range(last)) if temperature == "tuned" else [one[temperature]]

    def widths(self, budget: int) -> np.ndarray:
        """Those of the grid that leave room for a pair of heads, or for one head that sees all."""
        widths = self.theory["width"].values
        blocks = self.settings["geometry"] == "blocks"
        room = 2 * widths <= budget if blocks else widths < budget
        return np.asarray(widths[room | (widths == budget)])

    def candidates(self, case: Case, temperature: str) -> Candidates:
        """Widths (k,), simulated errors (batch, k) and theory's (k,), a candidate a width and rung.

        Theory's error is infinite where n_eff, or softmax's n_third, is too small for it.
        """
        if (case, temperature) not in self._candidates:
            self._candidates[case, temperature] = self._of_case(case, temperature)
        return self._candidates[case, temperature]

    def _of_case(self, case: Case, temperature: str) -> Candidates:
        family, n, budget = case
        chosen = {"n": n, "width": self.widths(budget)}
        error, of_case = {"family": family, "budget": budget}, {"rung": self.rungs(temperature)}
        law = self.theory.sel(chosen).isel(of_case)
        known = law.get("n_third", law["n_eff"]) >= self.theory.attrs["least_n_eff"]
        predicted = law["mse"].sel(error).where(known, np.inf).transpose("width", "rung").values
        values = self.batches["mse"].sel(chosen | error).isel(of_case)
        values = values.transpose("batch", "width", "rung")
        own = np.repeat(law["width"].values, predicted.shape[1])
        return own, values.values.reshape(len(values), -1), predicted.ravel()


def whole(splits: Splits, case: Case, temperature: str) -> Candidates:
    """The candidates whose width divides the budget, so that there are whole heads."""
    widths, values, predicted = splits.candidates(case, temperature)
    kept = case[2] % widths == 0
    return widths[kept], values[:, kept], predicted[kept]


def choices(splits: Splits, temperature: str) -> list[Effect]:
    """The splits of every case into whole heads, theory's best among them."""
    out = []
    for case in splits.cases():
        _, values, predicted = whole(splits, case, temperature)
        best = int(np.argmin(predicted))
        out.append(
            Effect(label(case), points=(splits.point,), values=values, best=best, at=facts(case))
        )
    return out


def label(case: tuple[str, float, int]) -> str:
    """A case in words."""
    return f"{case[0]} target, n = {case[1]:.4g}, D = {case[2]}"


def facts(case: tuple[str, float, int]) -> dict[str, float | str]:
    """What a claim may select cases by."""
    return {"family": case[0], "n": case[1], "budget": case[2]}


def simulated_depths(splits: Splits, temperature: str) -> list[Effect]:
    """Error at the narrowest and the widest heads over that at theory's best between, less 1.

    Of splits into whole heads. The ends at every rung that the temperature may take, so that none
    is chosen by its own noise.
    """
    out = []
    for case in splits.cases():
        widths, values, predicted = whole(splits, case, temperature)
        ends = np.isin(widths, (min(widths), max(widths)))
        best = values[:, np.argmin(np.where(ends, np.inf, predicted))]
        for place in np.flatnonzero(ends):
            gap = ratio(values[:, place], best) - 1
            name = f"{label(case)}, width {widths[place]}"
            end = "widest" if widths[place] == max(widths) else "narrowest"
            out.append(of_batches(name, gap, splits.point, at=facts(case) | {"end": end}))
    return out


def profile(splits: Splits, case: Case, temperature: str) -> tuple[np.ndarray, np.ndarray]:
    """Widths that theory knows, and the place among the candidates of the best rung of each."""
    every, _, predicted = splits.candidates(case, temperature)
    # Of each width its best rung: the last of those that come with ever smaller errors.
    order = np.argsort(-predicted)[np.isinf(predicted).sum() :]
    best = sorted(dict(zip(every[order], order, strict=True)).items())
    widths, places = np.array(best, int).reshape(-1, 2).T
    return widths, places


def inside(splits: Splits, case: Case, temperature: str) -> bool:
    """Whether theory's error is least at a width between the narrowest and the widest it knows."""
    predicted = splits.candidates(case, temperature)[2][profile(splits, case, temperature)[1]]
    return len(predicted) > 0 and 0 < int(np.argmin(predicted)) < len(predicted) - 1


def vertex(splits: Splits, case: Case, temperature: str) -> tuple[np.ndarray, float]:
    """d_k* as a real number, simulated and by theory: pseudo-values (batch,), and one number.

    The vertex of the parabola of log MSE on log width through theory's best width and its two
    neighbours, each at theory's best bandwidth, so that both roads answer the same question.
    """
    _, values, predicted = splits.candidates(case, temperature)
    widths, rows = profile(splits, case, temperature)
    if len(rows) < 3:  # theory knows too few widths for a vertex
        return np.full(len(values), np.nan), np.nan
    middle = np.clip(np.argmin(predicted[rows]), 1, len(rows) - 2)
    near = slice(middle - 1, middle + 2)
    x = np.log(widths[near])

    def lowest(mse: np.ndarray) -> np.ndarray:
        bend, slope, _ = np.polyfit(x, np.log(mse).T, 2)
        return np.asarray(np.exp(-slope / (2 * bend)))

    simulated = jackknife({"mse": values[:, rows[near]]}, lambda means: lowest(means["mse"]))
    return simulated, float(lowest(predicted[rows[near]]))


def steps(splits: Splits, what: str, temperature: str) -> list[Effect]:
    """The logarithm of simulated d_k* of one family over that of the other of ``STEPS``.

    At every n and D at which theory's error of both is least at an inner width of the grid. All
    families share keys and queries, so that their widths are paired.
    """
    out = []
    for n, budget in product(*(splits.theory[k].values.tolist() for k in ("n", "budget"))):
        cases = [(family, n, budget) for family in STEPS[what]]
        if all(inside(splits, case, temperature) for case in cases):
            first, second = (vertex(splits, case, temperature)[0] for case in cases)
            values = log_ratio(first, second)
            name, at = f"n = {n}, D = {budget}", {"n": n, "budget": budget}
            out.append(of_batches(name, values, splits.point, at=at))
    return out


def log_ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pseudo-values of the logarithm of one number over another, from those of either."""

    def statistic(means: Mapping[str, np.ndarray]) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # a mean below 0 has no logarithm: NaN, an open row
            return np.asarray(np.log(means["first"] / means["second"]))

    return jackknife({"first": first, "second": second}, statistic)


def movements(splits: Splits) -> Families:
    """How d_k* moves with n, and H* with D, by the simulation and beside theory."""
    sizes, budgets = (splits.theory[k].values.tolist() for k in ("n", "budget"))
    families: Families = {"growth": [], "slower": []}
    # At the other temperatures the best block takes half the budget or all: nothing inside moves.
    temperatures = TEMPERATURES if splits.settings["geometry"] == "views" else TEMPERATURES[:1]
    for name in temperatures:
        families |= {f"{kind}, {name}": [] for kind in ("growth", "heads", "counts")}
    for family in splits.theory["family"].values.tolist():
        grown: dict[tuple[str, int], np.ndarray] = {}
        for name in temperatures:
            best = {(n, d): vertex(splits, (family, n, d), name) for n in sizes for d in budgets}
            for budget in budgets:
                (first, start), (last, end) = (best[n, budget] for n in (sizes[0], sizes[-1]))
                grown[name, budget] = last - first
                words, at = f"{name}, {family}, {budget}", facts((family, sizes[-1], budget))
                families["growth"].append(
                    of_batches(words, last - first - (end - start), splits.point, at=at)
                )
                per = (last - first) / np.log(sizes[-1] / sizes[0])
                families[f"growth, {name}"].append(of_batches(words, per, splits.point, at=at))
            for n in sizes:
                values = np.stack([best[n, d][0] for d in budgets], axis=1)
                families[f"heads, {name}"].append(
                    of_batches(
                        f"{family}, n = {n}",
                        heads_slope(values, budgets) - 1,
                        splits.point,
                        at={"family": family, "n": n},
                    )
                )
                families[f"counts, {name}"] += [
                    of_batches(
                        label((family, n, d)),
                        heads_at(best[n, d][0], d),
                        splits.point,
                        x=d,
                        at={"family": family, "n": n},
                    )
                    for d in budgets
                ]
        families["slower"] += [
            of_batches(f"{name}, {family}, {d}", grown["fixed", d] - grown[name, d], splits.point)
            for name in temperatures[1:]
            for d in budgets
        ]
    return families


def heads_at(widths: np.ndarray, budget: int) -> np.ndarray:
    """Pseudo-values of ``H* = D/d_k*`` from those of d_k*."""
    return jackknife({"width": widths}, lambda means: budget / means["width"])


def heads_slope(widths: np.ndarray, budgets: list[int]) -> np.ndarray:
    """Pseudo-values of the slope of ``log H* = log D − log d_k*`` on log D, from those of d_k*."""
    size = np.log(budgets)
    pull = (size - size.mean()) / np.sum((size - size.mean()) ** 2)

    def slope(means: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # a mean below 0 has no logarithm: NaN, an open row
            return np.asarray(1 - np.log(means) @ pull)

    return jackknife({"width": widths}, lambda means: slope(means["width"]))


def agreement(splits: Splits, term: str) -> list[Effect]:
    """Simulation over theory, less 1, at every split, with its n_eff and the variance's share.

    And n_third, for softmax.

    Which splits these are is theory's to say: where the simulation has no number, this is NaN.
    """
    # The part of the labels' noise has no target: it is taken once.
    kept = slice(1) if term == "noise" else slice(None)
    theory = splits.theory.isel(family=kept)
    law, share = theory[term], (theory["variance"] / theory["mse"]).values
    gaps = (splits.batches[term] / law - 1).transpose(*law.dims, "batch").values
    seen = {
        key: theory[key].transpose("n", "width", "rung").values
        for key in ("n_eff", "n_third")
        if key in theory
    }
    out = []
    for place in np.ndindex(gaps.shape[:-1]):
        i, j, budget_at, k, rung = place
        family, n, budget = (
            theory[d].values[at].item()
            for d, at in zip(("family", "n", "budget"), (i, j, budget_at), strict=True)
        )
        width = theory["width"].values[k].item()
        if width in splits.widths(budget):
            own = {key: float(size[j, k, rung]) for key, size in seen.items()}
            own["share"] = float(share[place])
            name = f"{label((family, n, budget))}, width {width}"
            out.append(of_batches(name, gaps[place], splits.point, at=own))
    return out
