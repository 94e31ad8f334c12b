"""The loss from a kept temperature, and attended keys, against the length of the context."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import mcse
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import LAST, simulated_attended, theory_attended
from .problems import ENTMAX
from .roads import MATCHED, Case, Road, simulation_of, theory_of

WIDTH = 1
"""Head width that is drawn."""
PANELS = {
    "analytic": "smooth target (analytic)",
    "β = 1": "rough target (β = 1)",
}
SHOWN = {
    "softmax": "softmax",
    "sparsemax": "sparsemax (ν = 1)",
    "1.5-entmax": "1.5-entmax (ν = 2)",
    "4/3-entmax": "4/3-entmax (ν = 3)",
    "relu gap": "ReLU of the gap",
    "top-k, k fixed": "top-k, k fixed",
    "top-k, k ∝ n": "top-k, k ∝ n",
    "top-k, k ∝ n^(4/(4+d))": "top-k, $k ∝ n^{4/(4+d)}$",
}
"""Rules as the figure names them."""
COUNTED = {rule: f"{rule} (ν = {nu:g})" for rule, nu in ENTMAX.items()}


def numbers(results: Results) -> dict[str, float]:
    """Numbers that the caption quotes."""
    theory, simulation = theory_of(results), simulation_of(results)

    def loss(rule: str, smoothness: str, place: int) -> float:
        case = Case(WIDTH, smoothness, rule)
        return float(theory.kept(case)(theory.values(case).mean(0)).loss[place])

    simulated = Case(WIDTH, "analytic", "softmax")
    own = simulation.kept(simulated)(simulation.values(simulated).mean(0)).loss[LAST]
    return {
        "softmax": 1 + loss("softmax", "analytic", -2),
        "sparsemax": loss("sparsemax", "analytic", -2),
        "biweight": loss("1.5-entmax", "analytic", -2),
        "softmax_simulated": 1 + float(own),
        "last": float(theory.sizes[-2]),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    theory, simulation = theory_of(results), simulation_of(results)
    drawing, axes = figures.panels(
        1,
        3,
        height=3.9,
        title="When the context grows, α-entmax with ν = β keeps its error and its temperature",
    )
    for ax, (smoothness, title) in zip(axes[0], PANELS.items(), strict=False):
        losses(
            ax, theory, simulation, smoothness, claims["competitive", f"ν = β kept, {smoothness}"]
        )
        ax.set_title(title)
    axes[0, 0].set_ylabel("error at the kept temperature / at the best")
    counts(axes[0, 2], theory, simulation, claims["kept-temperature", "attended keys, exponent"])
    figures.letters(axes.flat)
    return drawing


def losses(ax: Axes, theory: Road, simulation: Road, smoothness: str, verdict: Verdict) -> None:
    """One line a rule: error at the kept parameter over that at the best."""
    points, lines = [], []
    for rule, name in SHOWN.items():
        case = Case(WIDTH, smoothness, rule)
        made = theory.kept(case)(theory.values(case).mean(0))
        lines.append(frame(name, theory.sizes[:-1], 1 + made.loss[:-1]))
        values = simulation.pseudovalues(lambda k: 1 + k.loss, case)[:, 1:]
        points.append(frame(name, simulation.sizes[1:], values.mean(0), mcse(values)))
    ax.set(yscale="log", xscale="log", ylim=(0.8, 1500))
    figures.curve(
        ax,
        pd.concat(points),
        pd.concat(lines).dropna(),
        "n",
        "loss",
        hue="rule",
        log="xy",
        verdict={SHOWN[MATCHED[smoothness]]: verdict},
    )
    figures.log_axes(ax, x=True, y=True)
    ax.set(xlabel="number of keys $n$ (tuned at 256)", ylabel="")
    figures.ticks(ax.yaxis, (1, 2, 5, 10, 100, 1000))


def counts(ax: Axes, theory: Road, simulation: Road, verdict: Verdict) -> None:
    """Attended keys of α-entmax at the kept temperature, and the slopes of the law."""
    points, lines = [], []
    for rule, name in COUNTED.items():
        case = Case(WIDTH, "analytic", rule)
        nu = ENTMAX[rule]
        sizes = theory.sizes[:-1]
        law = theory_attended(theory, case)[:, :-1].mean(0)
        lines.append(frame(name, sizes, law))
        own = simulated_attended(simulation, theory, case)
        points.append(frame(name, simulation.sizes, own.mean(0), mcse(own)))
        slope = law[-1] * (sizes / sizes[-1]) ** (2 * nu / (2 * nu + WIDTH))
        figures.theory(ax, sizes, slope, ls=":", lw=0.8, zorder=1)
    figures.curve(
        ax,
        pd.concat(points),
        pd.concat(lines),
        "n",
        "loss",
        hue="rule",
        log="xy",
        verdict=dict.fromkeys(COUNTED.values(), verdict),
    )
    figures.log_axes(ax, x=True, y=True)
    ax.set(xlabel="number of keys $n$", ylabel="", title="attended keys")
    figures.note(ax, "dotted, under the lines: $n^{2ν/(2ν+d)}$")


def frame(
    rule: str, sizes: np.ndarray, values: np.ndarray, error: np.ndarray | float = 0.0
) -> pd.DataFrame:
    """Rows of a rule."""
    return pd.DataFrame({"rule": rule, "n": sizes, "loss": values, "loss_mcse": error})
