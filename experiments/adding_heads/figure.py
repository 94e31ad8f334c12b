"""Error against H: budget growing beside budget fixed, a curve a kind of heads."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
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
        "gained": errors.drop(diverse[0], diverse[-1]).value,
        "first": errors.drop(diverse[0], diverse[1]).value,
        "last": errors.drop(diverse[-2], diverse[-1]).value,
        "best_heads": best.heads,
        "best_width": best.width,
        "least_n_eff": min(
            float(results.prediction(p)["n_eff"].min()) for p in set(errors.point.values())
        ),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    by_regime = {verdict.regime: verdict for verdict in verdicts}
    errors = Errors(results)
    drawing, axes = figures.panels(
        1,
        2,
        height=3.1,
        sharey=True,
        title="Only heads that look at different things add something, and less and less",
    )
    growing, fixed = axes[0]
    for ax, of, regime in (
        (growing, errors.growing, "growing D, diverse heads"),
        (fixed, errors.fixed, "fixed D, diverse against aligned"),
    ):
        table = errors_of(errors, [e for kind in KINDS for e in of(kind)])
        # One head is one point, drawn once.
        points = table[(table["count"] > 1) | (table["heads"] == KINDS[ALIGNED])]
        figures.curve(
            ax,
            points,
            table,
            "count",
            "MSE",
            hue="heads",
            log="x",
            verdict=by_regime[regime],
            labels={"title": "heads", "loc": "upper right"} if ax is fixed else None,
        )
        ax.set_xticks([], minor=True)
    counts = [e.heads for e in errors.growing(DIVERSE)]
    growing.set_xticks(counts, [f"{h}\n{h * WIDTH}" for h in counts])
    splits = errors.fixed(DIVERSE)
    fixed.set_xticks([e.heads for e in splits], [f"{e.heads}\n{e.width}" for e in splits])
    growing.set(xlabel="number of heads $H$\nbudget $D = 4H$")
    fixed.set(xlabel="number of heads $H$\nhead width $d_k = 16/H$", ylabel="")
    growing.set_title("budget grows ($d_k$ = 4)")
    fixed.set_title("budget fixed ($D$ = 16)")
    figures.letters(axes.flat)
    return drawing


def errors_of(errors: Errors, ensembles: Sequence[Ensemble]) -> pd.DataFrame:
    """Errors of these ensembles by simulation, with their MCSE, and by first-order theory."""
    rows = [
        (KINDS[e.correlation], e.heads, *mean_and_error(errors.batches[e]), errors.predicted(e))
        for e in ensembles
    ]
    frame = pd.DataFrame(rows, columns=["heads", "count", "simulation", "mcse", "theory"])
    return frame.assign(heads=pd.Categorical(frame["heads"], list(KINDS.values())))
