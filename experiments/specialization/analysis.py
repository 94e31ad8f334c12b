"""Diversity before and after learning, and what the held-out gain is made of."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sims import figures
from sims.judgement import Verdict, claim, equivalence, ordering
from sims.results import Results, mean_and_error

STREAMS = ("noise", "single", "additive", "isotropic")
LABELS = {
    "noise": "noise",
    "single": "single\ndirection",
    "additive": "additive",
    "isotropic": "isotropic",
}
VARIANTS = {"plain": "plain", "penalty": "penalty on overlap", "weights": "learned output weights"}
PARTS = {"squared_bias": "squared bias", "own": "own variance", "cross": "covariance of heads"}


def shown(results: Results) -> list[str]:
    """The streams of this run."""
    return [s for s in STREAMS if f"{s}, plain" in results.simulation]


def rise(results: Results, name: str) -> np.ndarray:
    """Rise of the diversity index, one a seed."""
    data = results.simulation[name]
    return data["hdi_after"].values - data["hdi"].values[:, 0]


def predicted(results: Results, name: str, part: str, state: str) -> np.ndarray:
    """A part of the error, or the whole ``mse``, by theory; one a seed."""
    data = results.theory[name]
    if part == "mse":
        return np.sum([data[f"{p}_{state}"].values for p in PARTS], axis=0)
    return data[f"{part}_{state}"].values


def share(results: Results, name: str, part: str) -> tuple[float, float]:
    """Share of the gain that is the fall of one part, by theory, with its error over seeds."""
    fell, gain = (
        predicted(results, name, p, "before") - predicted(results, name, p, "after")
        for p in (part, "mse")
    )
    ratio = fell.mean() / gain.mean()
    return ratio, mean_and_error((fell - ratio * gain) / gain.mean())[1]


def judge(results: Results, experiment: Any) -> list[Verdict]:
    seeds = min(results.batches(name) for name in results.simulation)

    def said(regime: str, decide: Any, effects: list[tuple[float, float]]) -> Verdict:
        wanted = claim(experiment, "specialization", regime)
        value, error = np.reshape(effects, (-1, 2)).T
        finding = decide(
            value, error, margin=wanted.margin, level=wanted.level, batches=seeds, fixed=True,
            replicates=results.replicates,
        )  # fmt: skip
        return Verdict.of(wanted, results.experiment, finding)

    verdicts = []
    for stream in shown(results):
        plain = f"{stream}, plain"
        verdicts += [
            said(f"diversity rises, {stream}", ordering, [mean_and_error(rise(results, plain))]),
            said(f"decorrelation explains the gain, {stream}", ordering,
                 [share(results, plain, "cross")]),
        ]  # fmt: skip
    free, even = (rise(results, f"additive, {v}") for v in ("weights", "plain"))
    verdicts.append(said("learned output weights", ordering, [mean_and_error(free - even)]))
    helped = []
    for stream in shown(results):
        without, with_ = (
            results.simulation[f"{stream}, {v}"]["mse_after"].values for v in ("plain", "penalty")
        )
        helped.append(mean_and_error((without - with_) / without.mean()))
    verdicts.append(said("a penalty helps", ordering, helped))
    gaps = []
    for name, data in results.simulation.items():
        for state in ("before", "after"):
            expected = predicted(results, name, "mse", state)
            gap = data[f"mse_{state}"].values - expected
            gaps.append(mean_and_error(gap / expected.mean()))
    verdicts.append(said("theory", equivalence, gaps))
    return verdicts


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    free, plain = (results.simulation[f"additive, {v}"] for v in ("weights", "plain"))
    return {
        "share": {s: share(results, f"{s}, plain", "cross")[0] for s in shown(results)},
        "hdi": {
            s: float(results.simulation[f"{s}, plain"]["hdi_after"].mean()) for s in shown(results)
        },
        "free": float(free["hdi_after"].mean()),
        "free_gain": float(1 - free["mse_after"].mean() / plain["mse_after"].mean()),
        "harm": float(
            results.simulation["single, penalty"]["mse_after"].mean()
            / results.simulation["single, plain"]["mse_after"].mean()
            - 1
        ),
        "n_eff": min(float(d[f"n_eff_{s}"].mean()) for d in results.theory.values()
                     for s in ("before", "after")),
    }  # fmt: skip


def figure(results: Results) -> Figure:
    drawing, axes = figures.panels(1, 3, height=3.0, width=figures.PAGE)
    with figures.style():
        _paths(axes[0, 0], results)
        _ends(axes[0, 1], results)
        _gains(axes[0, 2], results)
    figures.letters(axes.flat)
    return drawing


def _paths(ax: Axes, results: Results) -> None:
    names = shown(results)
    for i, stream in enumerate(names):
        path = results.simulation[f"{stream}, plain"]["hdi"].values
        steps = np.arange(path.shape[1])
        some = np.linspace(0, len(steps) - 1, 9).astype(int)
        color = figures.PALETTE[i]
        ax.plot(steps, path.mean(0), color=color, lw=0.9, zorder=2)
        error = path[:, some].std(0, ddof=1) / np.sqrt(len(path))
        figures.simulated(ax, some, path[:, some].mean(0), error, color, figures.MARKERS[i])
    ax.set(xlabel="gradient step", ylabel="diversity index", ylim=(-0.05, 1.08))
    figures.key(ax, [LABELS[s].replace("\n", " ") for s in names], loc="center right")
    ax.set_title("uniform output weights")


def _ends(ax: Axes, results: Results) -> None:
    names = shown(results)
    for i, (variant, text) in enumerate(VARIANTS.items()):
        color, marker = figures.PALETTE[4 + i], figures.MARKERS[4 + i]
        ends = [
            mean_and_error(results.simulation[f"{s}, {variant}"]["hdi_after"].values) for s in names
        ]
        value, error = np.array(ends).T
        x = np.arange(len(names)) + (i - 1) * 0.22
        figures.simulated(ax, x, value, error, color, marker, label=text)
    ax.set_xticks(range(len(names)), [LABELS[s] for s in names], fontsize=6)
    ax.set(ylabel="diversity index after learning", ylim=(-0.05, 1.45))
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.legend(loc="upper center", fontsize=6.5)


def simulated_share(results: Results, name: str) -> tuple[float, float]:
    """Simulated gain over theory's, with its error over seeds (the same targets and queries)."""
    data = results.simulation[name]
    found = data["mse_before"].values - data["mse_after"].values
    gain = predicted(results, name, "mse", "before") - predicted(results, name, "mse", "after")
    ratio = found.mean() / gain.mean()
    return ratio, mean_and_error((found - ratio * gain) / gain.mean())[1]


def _gains(ax: Axes, results: Results) -> None:
    """What theory's gain is made of, stacked to 100%; beside it the simulated gain."""
    names = shown(results)
    for i, stream in enumerate(names):
        name = f"{stream}, plain"
        up = down = 0.0
        for k, part in enumerate(PARTS):
            value, error = share(results, name, part)
            ax.bar(
                i - 0.1, 100 * value, 0.5, bottom=100 * (up if value > 0 else down),
                color=figures.PALETTE[(2, 8, 9)[k]], alpha=0.7, zorder=1,
                label=PARTS[part] if not i else None,
            )  # fmt: skip
            up, down = (up + value, down) if value > 0 else (up, down + value)
            if part == "cross":
                figures.simulated(
                    ax, i - 0.1, 100 * up, 100 * error, figures.PALETTE[9], marker="none"
                )
        value, error = simulated_share(results, name)
        figures.simulated(ax, i + 0.28, 100 * value, 100 * error, "black", "o")
    ax.axhline(0, color=figures.GREY, lw=0.7, zorder=1)
    ax.set_xticks(range(len(names)), [LABELS[s] for s in names], fontsize=6)
    ax.set(ylabel="share of the held-out gain (%)", ylim=(-25, 185))
    ax.set_yticks([0, 25, 50, 75, 100])
    ax.legend(loc="upper center", fontsize=6.5, title="fall of")
