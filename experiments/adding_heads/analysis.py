"""Error against the number of heads: D growing or fixed, heads aligned or diverse."""

from __future__ import annotations

import itertools
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from sims import figures
from sims.judgement import (
    Evidence,
    Verdict,
    claim,
    equivalence,
    identity,
    ordering,
)
from sims.results import Results, common, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, BUDGET = 4, 16
"""d_k of the growing budget, and the fixed budget D."""
DIVERSE, HALF, ALIGNED = 0.0, 0.5, 1.0
KINDS = {ALIGNED: "aligned", HALF: "noise correlation ½", DIVERSE: "diverse"}


class Errors:
    """Errors of the ensemble by (H, d_k, noise correlation), batches kept for paired contrasts."""

    def __init__(self, results: Results) -> None:
        self.batches: dict[tuple[int, int, float], np.ndarray] = {}
        self.theory: dict[tuple[int, int, float], float] = {}
        self.exact: dict[tuple[int, int, float], tuple[float, float]] = {}
        self.name: dict[tuple[int, int, float], str] = {}
        for name, at in results.points.items():
            heads, width = at["heads.count"], at["heads.width"]
            # One head is the same whatever the correlation of the noise of several.
            kinds = tuple(KINDS) if heads == 1 else (at["design.correlation"],)
            sizes = [h for h in 2 ** np.arange(10) if h <= heads] if width == WIDTH else [heads]
            for kind, size in itertools.product(kinds, map(int, sizes)):
                point = size, width, kind
                self.batches[point] = _error(results.simulation[name], size)
                self.name[point] = name
                theory = results.theory[name]
                self.theory[point] = float(_error(theory, size))
                if f"exact_{PARTS[0]}" in theory:
                    value, bound = (_error(theory, size, f"exact_{{}}{end}") for end in ENDS)
                    self.exact[point] = float(value), float(bound)

    def growing(self, kind: float) -> list[tuple[int, int, float]]:
        """Points of width :data:`WIDTH`, by H."""
        return sorted(p for p in self.batches if p[1] == WIDTH and p[2] == kind)

    def fixed(self, kind: float) -> list[tuple[int, int, float]]:
        """Points of budget :data:`BUDGET`, by H."""
        return sorted(p for p in self.batches if p[0] * p[1] == BUDGET and p[2] == kind)

    def drop(self, first: Any, second: Any) -> "Effect":
        """1 − second/first of the means, paired over common batches."""
        a, b = common(self.batches[first], self.batches[second])
        ratio = b.mean() / a.mean()
        error = mean_and_error((b - ratio * a) / a.mean())[1]
        return Effect(1 - ratio, error, len(a), (self.name[first], self.name[second]))

    def change(self, first: Any, second: Any) -> np.ndarray:
        """second/first − 1, one a common batch."""
        a, b = common(self.batches[first], self.batches[second])
        return b / a - 1

    def gain_lost(self, first: Any, second: Any, third: Any) -> "Effect":
        """Gain of the first step less gain of the second, in units of one head's error."""
        one = self.batches[self.growing(DIVERSE)[0]].mean()
        a, b, c = common(*(self.batches[p] for p in (first, second, third)))
        names = tuple(self.name[p] for p in (first, second, third))
        return Effect(*mean_and_error((a - 2 * b + c) / one), len(a), names)

    def against(self, law: float, point: Any) -> "Effect":
        """Simulated over predicted error, less 1."""
        value, error = mean_and_error(self.batches[point])
        return Effect(value / law - 1, error / law, len(self.batches[point]), (self.name[point],))


class Effect(NamedTuple):
    """An effect, its MCSE, the batches behind it, the points it is made of."""

    value: float
    error: float
    batches: int
    points: tuple[str, ...]


PARTS = ("integrated_bias_product", "integrated_signal_covariance", "integrated_noise_covariance")
ENDS = ("", "_error")
"""Of the names of an exact prediction and of the bound on its error."""


def _error(data: xr.Dataset, heads: int, name: str = "{}") -> np.ndarray:
    """Mean squared error of the average of the first heads, of the named matrices; one a batch."""
    matrix = np.sum([data[name.format(part)].values for part in PARTS], axis=0)
    return matrix[..., :heads, :heads].mean((-2, -1))


def judge(results: Results, experiment: Any) -> list[Verdict]:
    errors = Errors(results)
    aligned, diverse = errors.growing(ALIGNED), errors.growing(DIVERSE)
    split = errors.fixed(DIVERSE)

    def said(regime: str, decide: Any, effects: list[Effect], bounds: Any = 0.0) -> Verdict:
        wanted = claim(experiment, "adding-heads", regime)
        evidence = Evidence(
            np.array([e.value for e in effects]), np.array([e.error for e in effects]),
            np.array([e.batches for e in effects]), results.replicates,
            tuple(e.points for e in effects), bounds=bounds,
        )  # fmt: skip
        finding = decide(evidence, margin=wanted.margin, level=wanted.level)
        return Verdict.of(wanted, results.experiment, finding)

    # Aligned heads are one head: an identity of every draw, here of every batch.
    same = claim(experiment, "adding-heads", "growing D, aligned heads")
    several = [p for p in split if p[0] > 1]
    exact = list(errors.exact.values())
    best = min(split[1:-1], key=lambda p: errors.theory[p], default=split[-1])
    return [
        Verdict.of(same, results.experiment, identity(
            np.concatenate([errors.change(aligned[0], p) for p in aligned[1:]]),
            margin=same.margin, level=same.level, replicates=results.replicates,
        )),
        said("growing D, diverse heads", ordering,
             [errors.drop(a, b) for a, b in pairwise(diverse)]),
        said("growing D, returns fall", ordering,
             [errors.gain_lost(*diverse[k : k + 3]) for k in range(len(diverse) - 2)]),
        said("few diverse against many aligned", ordering,
             [errors.drop(aligned[-1], diverse[1])]),
        said("fixed D, diverse against aligned", ordering,
             [errors.drop((h, w, ALIGNED), (h, w, DIVERSE)) for h, w, _ in several]),
        said("fixed D, the best split", ordering,
             [errors.drop(end, best) for end in (split[0], split[-1])]),
        said("theory", equivalence, [errors.against(errors.theory[p], p) for p in errors.batches]),
        said("exact theory", equivalence,
             [errors.against(errors.exact[p][0], p) for p in errors.exact],
             [b / v for v, b in exact]),
    ]  # fmt: skip


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    errors = Errors(results)
    aligned, diverse = errors.growing(ALIGNED), errors.growing(DIVERSE)
    best = min(errors.fixed(DIVERSE), key=lambda p: errors.batches[p].mean())
    return {
        "most": aligned[-1][0],
        "few": diverse[1][0],
        "gained": errors.drop(diverse[0], diverse[-1]).value,
        "first": errors.drop(diverse[0], diverse[1]).value,
        "last": errors.drop(diverse[-2], diverse[-1]).value,
        "best_heads": best[0],
        "best_width": best[1],
        "worst_exact": max(abs(errors.against(v, p).value) for p, (v, _) in errors.exact.items()),
        "least_n_eff": min(float(d["n_eff"].min()) for d in results.theory.values()),
    }


def figure(results: Results) -> Figure:
    errors = Errors(results)
    drawing, axes = figures.panels(1, 2, height=2.9, width=figures.PAGE, sharey=True)
    with figures.style():
        _panel(axes[0, 0], errors, errors.growing)
        _panel(axes[0, 1], errors, errors.fixed)
        counts = [p[0] for p in errors.growing(DIVERSE)]
        axes[0, 0].set_xticks(counts, [f"{h}\n{h * WIDTH}" for h in counts])
        splits = errors.fixed(DIVERSE)
        axes[0, 1].set_xticks([p[0] for p in splits], [f"{h}\n{w}" for h, w, _ in splits])
        axes[0, 0].set(ylabel="MSE", xlabel="number of heads $H$\nbudget $D = 4H$")
        axes[0, 1].set(xlabel="number of heads $H$\nhead width $d_k = 16/H$")
        axes[0, 0].set_title("budget grows ($d_k$ = 4)")
        axes[0, 1].set_title("budget fixed ($D$ = 16)")
        shown = [k for k in KINDS if len(errors.fixed(k)) > 1]
        places = [list(KINDS).index(k) for k in shown]
        figures.key(
            axes[0, 1], [KINDS[k] for k in shown], [figures.PALETTE[i] for i in places],
            [figures.MARKERS[i] for i in places], title="heads", loc="upper right",
        )  # fmt: skip
    figures.letters(axes.flat)
    return drawing


def _panel(ax: Axes, errors: Errors, points: Any) -> None:
    for i, kind in enumerate(KINDS):
        chosen = points(kind)
        if len(chosen) < 2:
            continue
        heads = np.array([p[0] for p in chosen], float)
        figures.theory(ax, heads, [errors.theory[p] for p in chosen], figures.PALETTE[i])
        value, error = np.array([mean_and_error(errors.batches[p]) for p in chosen]).T
        # One head is one point, drawn once.
        first = 0 if kind == ALIGNED else int(heads[0] == 1)
        figures.simulated(
            ax, heads[first:], value[first:], error[first:], figures.PALETTE[i], figures.MARKERS[i]
        )
    figures.log_axes(ax, x=True)
    ax.set_xticks([], minor=True)
