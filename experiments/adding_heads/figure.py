"""Error against H: budget growing beside budget fixed, a curve a kind of heads."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import ALIGNED, DIVERSE, KINDS, WIDTH, Ensemble, Errors


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    errors = Errors(results)
    aligned, diverse = errors.growing(ALIGNED), errors.growing(DIVERSE)
    best = min(errors.fixed(DIVERSE), key=lambda e: errors.batches[e].mean())
    return {
        "most": aligned[-1].heads,
        "few": diverse[1].heads,
        "gained": errors.drop(diverse[0], diverse[-1]).value,
        "first": errors.drop(diverse[0], diverse[1]).value,
        "last": errors.drop(diverse[-2], diverse[-1]).value,
        "best_heads": best.heads,
        "best_width": best.width,
        "worst_exact": max(abs(errors.gap(e, "exact").value) for e in errors.exact()),
        "least_n_eff": min(float(results.prediction(p)["n_eff"].min()) for p in results.points),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    errors = Errors(results)
    drawing, axes = figures.panels(1, 2, height=2.9, width=figures.PAGE, sharey=True)
    growing, fixed = axes[0]
    _panel(growing, errors, errors.growing)
    _panel(fixed, errors, errors.fixed)
    counts = [e.heads for e in errors.growing(DIVERSE)]
    growing.set_xticks(counts, [f"{h}\n{h * WIDTH}" for h in counts])
    splits = errors.fixed(DIVERSE)
    fixed.set_xticks([e.heads for e in splits], [f"{e.heads}\n{e.width}" for e in splits])
    growing.set(ylabel="MSE", xlabel="number of heads $H$\nbudget $D = 4H$")
    fixed.set(xlabel="number of heads $H$\nhead width $d_k = 16/H$")
    growing.set_title("budget grows ($d_k$ = 4)")
    fixed.set_title("budget fixed ($D$ = 16)")
    drawn = [i for i, kind in enumerate(KINDS) if len(errors.fixed(kind)) > 1]
    figures.key(
        fixed, [list(KINDS.values())[i] for i in drawn], [figures.PALETTE[i] for i in drawn],
        [figures.MARKERS[i] for i in drawn], title="heads", loc="upper right",
    )  # fmt: skip
    figures.letters(axes.flat)
    return drawing


def _panel(ax: Axes, errors: Errors, of: Callable[[float], list[Ensemble]]) -> None:
    for kind, color, marker in zip(KINDS, figures.PALETTE, figures.MARKERS, strict=False):
        ensembles = of(kind)
        if len(ensembles) < 2:
            continue
        heads = np.array([e.heads for e in ensembles], float)
        figures.theory(ax, heads, [errors.predicted(e) for e in ensembles], color)
        value, error = np.array([mean_and_error(errors.batches[e]) for e in ensembles]).T
        # One head is one point, drawn once.
        first = 0 if kind == ALIGNED else int(heads[0] == 1)
        figures.simulated(ax, heads[first:], value[first:], error[first:], color, marker)
    figures.log_axes(ax, x=True)
    ax.set_xticks([], minor=True)
