"""Diversity before and after learning, and what the held-out gain is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sims.results import Results, mean_and_error

from sims import figures
from sims.judgement import Evidence, Verdict, claim, equivalence, ordering

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STREAMS = ("noise", "single", "additive", "isotropic")
LABELS = {
    "noise": "noise",
    "single": "single\ndirection",
    "additive": "additive",
    "isotropic": "isotropic",
}
VARIANTS = {"plain": "plain", "penalty": "penalty on overlap", "weights": "learned output weights"}
COLORS = (figures.PALETTE[0], figures.PALETTE[1], "black")
"""Of the variants."""
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


def simulated(results: Results, name: str, part: str, state: str) -> np.ndarray:
    """The same by simulation."""
    data = results.simulation[name]
    if part == "squared_bias":
        rest = data[f"own_{state}"] + data[f"cross_{state}"]
        return (data[f"mse_{state}"] - rest).values
    return data[f"{part}_{state}"].values


def share(results: Results, name: str, part: str, road: Any = predicted) -> np.ndarray:
    """Share of the gain that is the fall of one part, by a road; linearised, one value a seed."""
    fell, gain = (
        road(results, name, p, "before") - road(results, name, p, "after") for p in (part, "mse")
    )
    ratio = fell.mean() / gain.mean()
    return ratio + (fell - ratio * gain) / gain.mean()


ROADS = (simulated, predicted)


def judge(results: Results, experiment: Any) -> list[Verdict]:
    seeds = min(results.batches(name) for name in results.simulation)

    def said(regime: str, decide: Any, effects: list[tuple[float, float]]) -> Verdict:
        wanted = claim(experiment, "specialization", regime)
        value, error = np.reshape(effects, (-1, 2)).T
        evidence = Evidence(value, error, seeds, results.replicates, fixed=True)
        finding = decide(evidence, margin=wanted.margin, level=wanted.level)
        return Verdict.of(wanted, results.experiment, finding)

    verdicts = []
    for stream in shown(results):
        plain = f"{stream}, plain"
        verdicts += [
            said(f"diversity rises, {stream}", ordering, [mean_and_error(rise(results, plain))]),
            said(f"decorrelation explains the gain, {stream}", ordering,
                 [mean_and_error(share(results, plain, "cross"))]),
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
    apart = []
    for stream in shown(results):
        found, law = (share(results, f"{stream}, plain", "cross", r) for r in ROADS)
        apart.append(mean_and_error(found - law))
    verdicts.append(said("decorrelation by both roads", equivalence, apart))
    return verdicts


def numbers(results: Results) -> dict[str, Any]:
    """Numbers that the caption quotes."""
    names = {s: f"{s}, plain" for s in shown(results)}

    def after(name: str, road: Any) -> float:
        return float(road(results, name, "mse", "after").mean())

    return {
        "streams": {s: LABELS[s].replace("\n", " ") for s in names},
        "shares": {
            s: [float(share(results, name, "cross", road).mean()) for road in ROADS[::-1]]
            for s, name in names.items()
        },
        "hdi": {s: float(results.simulation[n]["hdi_after"].mean()) for s, n in names.items()},
        "free": float(results.simulation["additive, weights"]["hdi_after"].mean()),
        "free_gain": 1
        - after("additive, weights", simulated) / after(names["additive"], simulated),
        "harm": [
            after("single, penalty", road) / after(names["single"], road) - 1
            for road in ROADS[::-1]
        ],
        "n_eff": min(
            float(d[f"n_eff_{s}"].mean())
            for d in results.theory.values()
            for s in ("before", "after")
        ),
    }


def figure(results: Results) -> Figure:
    drawing, axes = figures.panels(2, 2, height=5.2, width=figures.PAGE)
    with figures.style():
        _paths(axes[0, 0], results)
        _ends(axes[0, 1], results)
        _gains(axes[1, 0], results)
        _errors(axes[1, 1], results)
        for ax in (axes[0, 1], axes[1, 0], axes[1, 1]):
            ax.set_xticks(range(len(shown(results))), [LABELS[s] for s in shown(results)])
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
    for i, (variant, text) in enumerate(VARIANTS.items()):
        ends = [
            mean_and_error(results.simulation[f"{s}, {variant}"]["hdi_after"].values)
            for s in shown(results)
        ]
        value, error = np.array(ends).T
        x = np.arange(len(ends)) + (i - 1) * 0.2
        figures.simulated(ax, x, value, error, COLORS[i], figures.MARKERS[4 + i], label=text)
    ax.set(ylabel="diversity index after learning", ylim=(-0.05, 1.08))
    ax.legend(loc="center left", bbox_to_anchor=(0.42, 0.3))


def _gains(ax: Axes, results: Results) -> None:
    """What the gain is made of: theory's dashes, simulated points."""
    for i, part in enumerate(PARTS):
        color, marker = figures.PALETTE[i], figures.MARKERS[i]
        for place, stream in enumerate(shown(results)):
            x = place + (i - 1) * 0.26
            law, (value, error) = (
                mean_and_error(share(results, f"{stream}, plain", part, road))
                for road in (predicted, simulated)
            )
            figures.theory(ax, [x - 0.11, x + 0.11], [100 * law[0]] * 2, color, lw=1.6)
            figures.simulated(ax, x, 100 * value, 100 * error, color, marker)
    ax.axhline(0, color=figures.GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)
    ax.set(ylabel="share of the held-out gain (%)", ylim=(-15, 125), yticks=range(0, 101, 25))
    figures.key(ax, list(PARTS.values()), title="fall of", loc="center")


def _errors(ax: Axes, results: Results) -> None:
    """Held-out error after learning over that before, theory's dashes and simulated points."""
    for i, variant in enumerate(VARIANTS):
        for place, stream in enumerate(shown(results)):
            name, x = f"{stream}, {variant}", place + (i - 1) * 0.26
            ratios = []
            for road in (predicted, simulated):
                before, after = (road(results, name, "mse", s) for s in ("before", "after"))
                ratio = after.mean() / before.mean()
                ratios.append(mean_and_error(ratio + (after - ratio * before) / before.mean()))
            figures.theory(ax, [x - 0.11, x + 0.11], [ratios[0][0]] * 2, COLORS[i], lw=1.6)
            figures.simulated(ax, x, *ratios[1], COLORS[i], figures.MARKERS[4 + i])
    ax.set(ylabel="held-out MSE, after / before", ylim=(0, 1.08))
