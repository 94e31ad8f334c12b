"""Error by number of levels, dimensions counted, cost of a layer, and mixtures of scales."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from sims import figures
from sims.effects import Effect
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import effects, part

WORDS = {
    "scores": "in scores: one estimator",
    "outputs": "in outputs: an ensemble",
    "single": "one bandwidth, same mean square",
}
"""Arms of the mixtures, in words."""
DECAY = {
    "geometric ¼": "geometric target, ¼",
    "geometric ½": "geometric target, ½",
    "geometric ¾": "geometric target, ¾",
    "power law": "every target",
}
"""Targets to the claims that their error falls geometrically."""
SCORES = 1.3125
"""What scores of three levels cost over those of one."""
LEAST = 1e-8
"""Errors below are not drawn."""


def numbers(results: Results) -> dict[str, float | str]:
    """Numbers and cases that the caption quotes."""
    families = effects(results)
    loss = {str(e.at["mixture"]): e.value for e in families["loss of outputs"]}
    gain = families["gain over scores"]
    return {
        "near": loss["near scales"],
        "far": loss["far scales"],
        "scores": -next(e.value for e in gain if e.at["mixture"] == "far scales"),
        "strict": case(families["search, strict"][0]),
        "leak": case(families["search, leak"][0]),
        "needless": case(families["search, needless"][0]),
        "crowded": case(families["search, needless, long"][0]),
        "dear": case(families["search, dear"][0]),
    }


def case(effect: Effect) -> str:
    """The case that a search ended at."""
    return effect.label[effect.label.index("T=") :] if "T=" in effect.label else effect.label


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        2,
        2,
        height=5.6,
        title="The error falls as the levels left out weigh; scores on scales are one estimator",
    )
    rows, lines = [], []
    for point in part(results, "truncation"):
        data, law = results.estimates[point], results.prediction(point)
        name = str(results.coordinates[point]["spectrum"])
        mean = data["error"].mean("batch").values
        # The tail's weight, through the error of four levels.
        scale = mean[3] / float(law["tail"][3])
        for place, kept in enumerate(data["kept"].values):
            if mean[place] > LEAST:
                rows.append((name, kept, mean[place], float(data["error_mcse"][place])))
            if float(law["tail"][place]) > LEAST:
                lines.append((name, kept, scale * float(law["tail"][place])))
    points = pd.DataFrame(rows, columns=["target", "levels", "relative error", "mcse"])
    tails = pd.DataFrame(lines, columns=["target", "levels", "theory"])
    figures.curve(
        axes[0, 0],
        points,
        tails,
        "levels",
        "relative error",
        hue="target",
        log="y",
        labels={"loc": "lower left"},
        verdict={name: claims["scale-decay", regime] for name, regime in DECAY.items()},
    )
    axes[0, 0].set_title("error of the first levels")
    figures.ticks(axes[0, 0].yaxis, [1, 0.1, 0.01, 1e-3, 1e-4])
    counted = [
        (
            f"d = {results.number(point, 'width'):.0f}",
            results.number(point, "tokens"),
            float(results.estimates[point]["pairs"].mean()),
            0.0,
            float(results.prediction(point)["pairs"]),
        )
        for point in part(results, "checks")
        if results.number(point, "levels") == 3
    ]
    frame = pd.DataFrame(counted, columns=["width", "tokens", "dimension", "mcse", "theory"])
    figures.curve(
        axes[0, 1],
        frame,
        frame.drop(columns="dimension"),
        "tokens",
        "dimension",
        hue="width",
        log="x",
        labels="key",
        verdict=claims["scale-pairs", "any number of tokens"],
    )
    figures.ticks(axes[0, 1].xaxis, sorted(set(frame["tokens"])))
    axes[0, 1].set(title="span of three levels' scores", ylim=(0, 30))
    cost = [
        (
            "whole layer",
            results.number(point, "ratio"),
            float(results.estimates[point]["layer_cost"].mean()),
            0.0,
            float(results.prediction(point)["layer_cost"]),
        )
        for point in part(results, "cost")
        if results.number(point, "levels") == 3 and results.number(point, "tokens") == 64
    ]
    frame = pd.DataFrame(cost, columns=["cost", "T/d", "cost over plain", "mcse", "theory"])
    figures.curve(
        axes[1, 0],
        frame,
        frame.drop(columns="cost over plain"),
        "T/d",
        "cost over plain",
        log="x",
        labels=None,
        verdict=claims["scale-cost-layer", "1.3125 of a layer"],
    )
    figures.ticks(axes[1, 0].xaxis, sorted(frame["T/d"]))
    claim = claims["scale-cost-layer", "1.3125 of a layer"]
    figures.band(axes[1, 0], (SCORES - claim.margin, SCORES + claim.margin), percent=False)
    axes[1, 0].set(title="cost of a layer at L = 3", xlabel="tokens / features, T/d")
    mixed = [
        (
            WORDS[str(arm)],
            name,
            float(data["mse"].sel(arm=arm).mean()),
            float(data["mse_mcse"].sel(arm=arm)),
            float(law["mse"].sel(arm=arm)),
        )
        for name in ("near scales", "far scales")
        for data, law in (
            (results.estimates[f"mixture, {name}"], results.prediction(f"mixture, {name}")),
        )
        for arm in data["arm"].values
    ]
    frame = pd.DataFrame(mixed, columns=["mixture", "scales", "mse", "mcse", "theory"])
    figures.curve(
        axes[1, 1],
        frame,
        frame.drop(columns="mse"),
        "scales",
        "mse",
        hue="mixture",
        log="y",
        labels={"loc": "upper left"},
        verdict={
            name: claims["scale-mixture", f"one bandwidth against outputs, {name}"]
            for name in ("near scales", "far scales")
        },
    )
    figures.ticks(axes[1, 1].yaxis, (0.05, 0.1, 0.2))
    axes[1, 1].set(title="three scales mixed", ylabel="mean squared error")
    figures.letters(axes.flat)
    return drawing
