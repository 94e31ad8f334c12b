"""The best split of a budget: where it is, by both roads, and how it moves with n and D."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import stdtrit

from sims import figures
from sims.judgement import Finding, Verdict, claim, equivalence, ordering
from sims.results import Results, mean_and_error
from sims.scaling import Comparison, compare, exponent_claim, law_claim

TEMPERATURES = {
    "fixed": "fixed temperature",
    "transformer": "Transformer's temperature",
    "tuned": "re-tuned bandwidth",
}
BUDGET = 24
"""D of the curves d_k*(n)."""
Case = tuple[str, int, int]
"""Family of targets, n, budget."""


class Splits:
    """The simulated grid: candidates of every case, their batches, and what theory says."""

    def __init__(self, results: Results, experiment: Any) -> None:
        settings = experiment.settings | experiment.settings.get(results.fidelity, {})
        self.least_n_eff = settings["least_n_eff"]
        self.ladder, self.fixed = settings["ladder"], settings["bandwidth"]
        self.batches, self.theory = results.simulation["splits"]["mse"], results.theory["splits"]
        self.count = results.batches("splits")

    def cases(self) -> Iterator[Case]:
        return product(*(self.theory[k].values.tolist() for k in ("family", "n", "budget")))

    def rungs(self, temperature: str) -> list[int]:
        """Places on the ladder that the temperature may take."""
        every = len(self.ladder)
        one = {"fixed": self.ladder.index(self.fixed), "transformer": every}
        return list(range(every)) if temperature == "tuned" else [one[temperature]]

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
                if float(at["n_eff"].sel(width=w).isel(rung=r)) >= self.least_n_eff
                else np.inf
                for w, r in chosen
            ]
        )

    def contrasts(self, case: Case, temperature: str) -> tuple[list[Any], int, Any, Any]:
        """Candidates, the place of theory's best, relative differences (i, j) and their errors."""
        chosen = self.candidates(temperature, case[2])
        values = self.simulated(case, chosen)
        gaps = (values[:, :, None] - values[:, None, :]) / values.mean(0)
        error = gaps.std(0, ddof=1) / np.sqrt(self.count)
        return chosen, int(np.argmin(self.predicted(case, chosen))), gaps.mean(0), error

    def best(self, case: Case, temperature: str, level: float) -> tuple[list[Any], int, list[int]]:
        """Candidates, the place of simulation's best, and the places of its set of optima."""
        chosen, _, gap, error = self.contrasts(case, temperature)
        low = gap - _quantile(self.count, level, len(chosen) - 1) * error
        return (
            chosen,
            int(np.argmin(self.simulated(case, chosen).mean(0))),
            [i for i in range(len(chosen)) if not (np.delete(low[i], i) > 0).any()],
        )


def _quantile(batches: int, level: float, comparisons: int) -> float:
    """One-sided Student quantile, simultaneous over comparisons (Bonferroni)."""
    return float(stdtrit(batches - 1, 1 - (1 - level) / comparisons))


def membership(splits: Splits, temperature: str, wanted: Any, replicates: int) -> Finding:
    """Whether theory's best split is in the simulation's set of optima in every case.

    A split is in the set unless a rival is better, by paired contrasts simultaneous over the rivals of
    the case. Refuted if theory's is outside in a case although contrasts are simultaneous over
    all cases as well; inconclusive if it is outside only by the weaker standard, or if a set leaves
    out no width.
    """
    cases, worst, outside, blunt = list(splits.cases()), None, 0, 0
    for case in cases:
        chosen, at, gap, error = splits.contrasts(case, temperature)
        rivals = len(chosen) - 1
        strict = _quantile(splits.count, wanted.level, rivals * len(cases))
        width = np.delete(error[at], at) * strict
        effect = np.delete(gap[at], at)
        place = int(np.argmax(effect - width))
        found = effect[place], effect[place] - width[place], effect[place] + width[place]
        worst = found if worst is None or found[1] > worst[1] else worst
        inside = splits.best(case, temperature, wanted.level)[2]
        outside += at not in inside
        blunt += len({chosen[i][0] for i in inside}) == len({w for w, _ in chosen})
    assert worst is not None
    verdict = "refuted" if worst[1] > 0 else "inconclusive" if outside or blunt else "supported"
    reason = (
        f"theory's best is in the set in {len(cases) - outside} of {len(cases)} cases; the set "
        f"leaves out some width in {len(cases) - blunt} (worst contrast with a rival shown)"
    )
    return Finding(
        verdict, float(worst[0]), (float(worst[1]), float(worst[2])),
        wanted.margin, wanted.level, replicates, reason,
    )  # fmt: skip


def judge(results: Results, experiment: Any) -> list[Verdict]:
    splits = Splits(results, experiment)
    surface, optimum = (splits.theory[k] for k in ("surface", "optimum"))
    settings = experiment.settings | experiment.settings.get(results.fidelity, {})
    verdicts = []

    def said(id: str, regime: str, found: Any) -> None:
        wanted = claim(experiment, id, regime)
        verdicts.append(Verdict.of(wanted, results.experiment, found(wanted)))

    def common(wanted: Any) -> dict[str, Any]:
        return {
            "margin": wanted.margin, "level": wanted.level, "batches": splits.count,
            "replicates": results.replicates,
        }  # fmt: skip

    for name in ("fixed", "tuned"):
        depth = depths(surface.sel(temperature=name))
        said("allocation", f"{TEMPERATURES[name]}, theory",
             lambda w, d=depth: ordering(d, np.zeros_like(d), **common(w) | {"replicates": 0}))
        said("allocation", f"{TEMPERATURES[name]}, simulation",
             lambda w, n=name: ordering(*interior(splits, n), **common(w)))  # fmt: skip
    for name, words in TEMPERATURES.items():
        said("allocation", f"both roads, {words}",
             lambda w, n=name: membership(splits, n, w, results.replicates))  # fmt: skip
    said("allocation", "error by both roads", lambda w: equivalence(*agreement(splits), **common(w)))
    compared = {
        regime: laws(optimum, settings, *at) for regime, at in LAWS.items()
    }
    for regime, found in compared.items():
        said("dk-log", regime, lambda w, c=found: _fitted(c, w, law_claim, law="log"))
    said("dk-log", "re-tuned bandwidth, square root",
         lambda w: _fitted(compared["re-tuned bandwidth"], w, _exponent, expected=0.5))  # fmt: skip
    hot = optimum.sel(temperature="transformer", family="smooth", dense_budget=BUDGET)
    late = [float(hot.sel(dense_n=n, method="nearest")) for n in (1e5, 1e8)]
    said("dk-log", TEMPERATURES["transformer"],
         lambda w: ordering(late[1] / late[0] - 1, 0.0, **common(w) | {"replicates": 0}))
    for name in ("fixed", "tuned"):
        gaps = np.array([s - 1 for s in slopes(optimum, settings, name).values()])
        said("heads-linear", TEMPERATURES[name],
             lambda w, g=gaps: equivalence(g, np.zeros_like(g), **common(w) | {"replicates": 0}))
    return verdicts


LAWS = {
    "fixed temperature": ("fixed", "smooth"),
    "re-tuned bandwidth": ("tuned", "smooth"),
    "fixed temperature, rough target": ("fixed", "rough"),
    "re-tuned bandwidth, rough target": ("tuned", "rough"),
}
"""Regimes in which the growth of d_k* is compared with laws: temperature and family of targets."""


def depths(mse: xr.DataArray) -> np.ndarray:
    """Error at either end of the admissible widths over the least error, less 1."""
    values = mse.values.reshape(-1, mse.sizes["dense_width"])
    ends = [(row[~np.isnan(row)][0], row[~np.isnan(row)][-1]) for row in values]
    return (np.array(ends) / np.nanmin(values, axis=1)[:, None] - 1).ravel()


def interior(splits: Splits, temperature: str) -> tuple[list[float], list[float]]:
    """Error at the narrowest and the widest heads over that at theory's best split, less 1.

    The ends are taken at the rung that is best for them in the simulation itself, which favours them.
    """
    found = []
    for case in splits.cases():
        chosen, at, _, _ = splits.contrasts(case, temperature)
        values, widths = splits.simulated(case, chosen), np.array([w for w, _ in chosen])
        for end in (widths.min(), widths.max()):
            mine = np.flatnonzero(widths == end)
            least = mine[np.argmin(values.mean(0)[mine])]
            found.append(excess(values[:, least], values[:, at]))
    value, error = zip(*found, strict=True)
    return list(value), list(error)


def excess(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """first/second − 1 of the means of paired batches, with its standard error."""
    ratio = first.mean() / second.mean()
    return ratio - 1, mean_and_error((first - ratio * second) / second.mean())[1]


def agreement(splits: Splits) -> tuple[np.ndarray, np.ndarray]:
    """Simulated error over theory's, less 1, with its error, where n_eff ≥ 50."""
    expected = splits.theory["mse"].where(splits.theory["n_eff"] >= 50)
    ratio = splits.batches / expected
    effect = (ratio.mean("batch", skipna=False) - 1).values.ravel()
    error = (ratio.std("batch", ddof=1, skipna=False) / np.sqrt(splits.count)).values.ravel()
    known = ~np.isnan(effect)
    return effect[known], error[known]


def curve(optimum: xr.DataArray, settings: Any, name: str, family: str) -> tuple[Any, Any]:
    """n and d_k* at :data:`BUDGET`, thinned to the points that laws are compared on."""
    step = settings["decades"]["per_decade"] // settings["laws"]["per_decade"]
    found = optimum.sel(temperature=name, family=family, dense_budget=BUDGET)[::step]
    return found["dense_n"].values, found.values


def laws(optimum: xr.DataArray, settings: Any, name: str, family: str) -> Comparison | str:
    """The laws of d_k*(n) compared, or why they are not."""
    asked = settings["laws"]
    if asked is None:
        return "laws are not fitted at this fidelity"
    n, width = curve(optimum, settings, name, family)
    missing = int(np.isnan(width).sum())
    if missing:
        return f"no minimum inside theory's range at {missing} of {len(n)} points"
    return compare(n, width, np.full(len(n), asked["error"]), scatter=asked["scatter"])


def _fitted(compared: Comparison | str, wanted: Any, decide: Any, **options: Any) -> Finding:
    if isinstance(compared, str):
        return Finding("inconclusive", None, None, wanted.margin, wanted.level, 0, compared)
    if decide is not law_claim:
        options["margin"] = wanted.margin
    return decide(compared, level=wanted.level, replicates=0, **options)


def _exponent(compared: Comparison, **options: Any) -> Finding:
    return exponent_claim(compared.fits["log_power"], **options)


def slopes(optimum: xr.DataArray, settings: Any, name: str) -> dict[tuple[str, float], float]:
    """Slope of log H* on log D, by family and n; NaN where a minimum is missing."""
    out = {}
    for family, n in product(optimum["family"].values.tolist(), settings["lines"]["n"]):
        width = optimum.sel(temperature=name, family=family).sel(dense_n=n, method="nearest")
        size, heads = np.log(width["dense_budget"].values), -np.log(width.values)
        centred = size - size.mean()
        out[family, n] = 1 + float(centred @ heads / (centred @ centred))
    return out


def numbers(results: Results, experiment: Any) -> dict[str, Any]:
    """Numbers that the caption quotes."""


def figure(results: Results, experiment: Any) -> Figure:
    """Errors of the splits, the valley over n, d_k*(n), H*(D)."""
