"""What a pass attends to, what merging does to each term, the temperature it is, what it saves."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure

from sims import figures
from sims.estimates import jackknife, mean_and_error
from sims.judgement import Verdict
from sims.study.results import Results

from .effects import base, counted, effects, grid

TERMS = {
    "squared_bias": "squared bias",
    "noise_variance": "noise",
    "signal_variance": "signal",
}
DESIGNS = ("iid", "φ = 0.6", "φ = 0.9", "smooth")
"""In order of how alike neighbours are."""
READINGS = ("opening", "latent", "whole", "half")


def numbers(results: Results) -> dict[str, float | str]:
    """Numbers that the caption quotes: gaps in units of rounding, and the search's first cells."""
    families = effects(results)
    passes = families["parallel and step by step"]
    worst = max(float(np.max(np.asarray(effect.values))) for effect in passes)
    first = results.estimates["search"]["first"].values
    cells = first.reshape(-1, *first.shape[-2:])
    search = {
        name: " or ".join(
            sorted({f"T = {tokens:g}, s = {stride:g}" for tokens, stride in cells[:, place]})
        )
        for place, name in enumerate(READINGS)
    }
    dearer = families["products of a step over those of MHA"]
    inside = [effect.value for effect in families["whole chunks first, inside"]]
    return {
        **search,
        "parallel_gap": worst,
        "drawn": results.estimates[next(iter(results.problems))].attrs["replicates"],
        "inside_least": f"{min(inside):.2g}",
        "inside_most": f"{max(inside):.2g}",
        "dearer_until": max(e.at["stride"] for e in dearer if e.value > 0),
    }


def figure(results: Results, verdicts: Sequence[Verdict]) -> Figure:
    claims = {(verdict.claim, verdict.regime): verdict for verdict in verdicts}
    drawing, axes = figures.panels(
        2,
        2,
        height=5.6,
        title="Merging neighbours is a temperature: free where they are alike, dominated where not",
    )
    attention(axes[0, 0], results, claims)
    errors(axes[0, 1], results, claims)
    temperatures(axes[1, 0], results, claims)
    savings(axes[1, 1], results, claims)
    figures.letters(axes.flat)
    return drawing


def attention(ax: Axes, results: Results, claims: dict[tuple[str, str], Verdict]) -> None:
    """Attention of the parallel pass; what the mask closes is left white."""
    weights = results.estimates["pattern"]["attention"].values[0, 0]
    count, stride = len(weights), results.settings["pattern"]["stride"]
    places = np.arange(count + 1) + 0.5
    # From where it stands out from the white of what is closed.
    shades = ListedColormap(colormaps["Blues"](np.linspace(0.45, 1, 64)))
    image = ax.pcolormesh(
        places,
        places,
        np.where(weights > 0, weights, np.nan),
        cmap=shades,
        norm=LogNorm(5e-3, 1, clip=True),
        edgecolors="white",
        linewidth=0.4,
    )
    bar = ax.figure.colorbar(image, ax=ax, ticks=[0.01, 0.1, 1], aspect=30, pad=0.02)
    bar.ax.set_yticklabels(["0.01", "0.1", "1"])
    bar.set_label("weight")
    bar.outline.set_visible(False)
    for end in range(stride, count, stride):
        ax.axvline(end + 0.5, color=figures.GREY, lw=0.5, ls=(0, (2, 2)))
    ax.set(xlabel="slot as it stood after token n", ylabel="token m", aspect="equal")
    ax.invert_yaxis()
    ax.set_title(f"parallel pass, s = {stride}")
    figures.badge(ax, claims["mtla-parallel", "gates as printed"])


def errors(ax: Axes, results: Results, claims: dict[tuple[str, str], Verdict]) -> None:
    """Each term over that of unmerged heads, softmax, by design and stride; the MSE's rise."""
    places, b, rows = grid(results), base(results, "softmax"), []
    designs = [d for d in DESIGNS if any(key[:2] == ("softmax", d) for key in places)]
    strides = sorted({key[2] for key in places if key[0] == "softmax"} - {1})
    for (kernel, design, stride, bandwidth), point in places.items():
        if kernel != "softmax" or stride == 1 or bandwidth != b:
            continue
        alone = places[kernel, design, 1, b]
        for term, name in TERMS.items():
            one, two = (results.estimates[p][term].values for p in (point, alone))
            values = jackknife({"one": one, "two": two}, lambda t: t["one"] / t["two"])
            law = results.prediction(point)[term] / results.prediction(alone)[term]
            rows.append((name, design, stride, *mean_and_error(values), float(law)))
    frame = pd.DataFrame(rows, columns=["term", "design", "s", "simulation", "mcse", "theory"])
    width = len(designs) + 1
    for number, name in enumerate(TERMS.values()):
        color, of_term = figures.PALETTE[number], frame[frame["term"] == name]
        for place, stride in enumerate(strides):
            own = of_term[of_term["s"] == stride].set_index("design")
            own = own.loc[[design for design in designs if design in own.index]]
            order = np.array([designs.index(design) for design in own.index])
            at = place * width + order + 0.15 * (number - 1.5)
            ax.plot(at, own["theory"], color=color, lw=1.1, zorder=2)
            label = name if not place else None
            figures.simulated(ax, at, own["simulation"], own["mcse"], color, label=label)
    rises = {
        (e.at["design"], e.at["stride"]): e
        for e in effects(results)["rise of the error"]
        if e.at["kernel"] == "softmax" and e.at["design"] in designs and e.at["stride"] in strides
    }
    figures.simulated(
        ax,
        [strides.index(int(s)) * width + designs.index(d) + 0.25 for d, s in rises],
        [1 + e.value for e in rises.values()],
        [e.error for e in rises.values()],
        figures.PALETTE[len(TERMS)],
        marker="D",
        label="MSE, drawn problems",
    )
    figures.log_axes(ax, y=True, plain=True)
    figures.ticks(ax.yaxis, (0.7, 1, 1.5, 2))
    ax.set_ylim(0.55, 2.2)
    ax.axhline(1, color=figures.GREY, lw=0.8, ls=(0, (4, 3)), zorder=1)
    short = {"iid": "iid", "smooth": "sm."}
    words = {"iid": "iid keys", "smooth": "smooth keys"}
    verdicts = {
        (d, s): claim
        for d in designs
        for s in strides
        if (claim := claims.get(("merge-free", f"softmax, {words.get(d, d)}, s = {s}")))
    }
    ticks = {}
    for place, stride in enumerate(strides):
        for i, design in enumerate(designs):
            name = short.get(design, design.removeprefix("φ = "))
            judged = {name: verdicts[design, stride]} if (design, stride) in verdicts else {}
            ticks[place * width + i] = figures.signed(name, judged, "\n")
    ax.set_xticks(list(ticks), list(ticks.values()))
    figures.badge(ax, verdicts)
    figures.bars_note(ax)
    margin = next(iter(verdicts.values())).margin
    figures.band(ax, (-np.inf, 1 + margin), words=False)
    figures.note(ax, f"b, grey: margin of the MSE, below {1 + margin:g}")
    middle = (len(designs) - 1) / 2
    for place, stride in enumerate(strides):
        ax.annotate(
            f"s = {stride}",
            (place * width + middle, 0.99),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="top",
            fontsize=figures.SMALL,
            color=figures.GREY,
        )
    ax.set(
        ylabel="merged / unmerged heads",
        title="terms of softmax heads, same temperature",
        xlabel="keys: iid, φ of AR(1), smooth (sm.); ✓, ✗: MSE",
    )
    ax.legend(loc="lower center", ncols=2, columnspacing=1.0)


def temperatures(ax: Axes, results: Results, claims: dict[tuple[str, str], Verdict]) -> None:
    """Variance on iid keys against the temperature of unmerged heads with the same limit."""
    rows = []
    for (kernel, design, stride, bandwidth), point in grid(results).items():
        if (kernel, design) != ("softmax", "iid") or stride > 2:
            continue
        name = "unmerged, at τ" if stride == 1 else "s = 2, at τ/2"
        mean, error = mean_and_error(1e4 * results.estimates[point]["ensemble_variance"].values)
        theory = 1e4 * float(results.prediction(point)["ensemble_variance"])
        rows.append((name, stride * bandwidth**2, mean, error, theory))
    frame = pd.DataFrame(rows, columns=["heads", "temperature", "simulation", "mcse", "theory"])
    figures.curve(
        ax,
        frame,
        None,
        "temperature",
        "variance of the average (10⁻⁴)",
        hue="heads",
        labels={"loc": "upper right", "bbox_to_anchor": (1, 0.92)},
        verdict=claims["merge-dominated", "softmax, iid keys"],
    )
    ax.set(xlabel="temperature τ of equal limits", title="iid keys, same limits")


def savings(ax: Axes, results: Results, claims: dict[tuple[str, str], Verdict]) -> None:
    """Cache and products of a decoding step, as shares of those of multi-head attention."""
    strides, theory = results.settings["sizes"]["strides"], results.prediction("sizes")
    names = {"elements": "cache", "products": "products of a step"}
    for color, (name, words) in zip(figures.PALETTE, names.items(), strict=False):
        counts, law = counted(results, name), theory[name].values
        ax.plot(strides, law[:-1] / law[-1], color=color, lw=1.2, zorder=2)
        ax.plot(strides, counts[:-1] / counts[-1], "o", color=color, ms=4, mfc="white", label=words)
    reported = results.settings["reported"]
    memory = {1: reported["mla"]} | {int(s): v for s, v in reported["merged"].items()}
    ax.plot(
        list(memory),
        [v / reported["mha"] for v in memory.values()],
        "x",
        color=figures.GREY,
        ms=4,
        label="memory as reported",
    )
    figures.log_axes(ax, y=True, plain=True)
    figures.ticks(ax.yaxis, (0.05, 0.1, 0.2, 0.5, 1, 2, 4))
    ax.set_ylim(bottom=0.015)
    figures.reference(ax, 1.0, "multi-head attention", at=0.98)
    figures.ticks(ax.xaxis, strides)
    ax.set(xlabel="stride s", ylabel="share of multi-head attention", title="what merging saves")
    ax.legend(loc="lower left")
    figures.badge(ax, claims["mtla-flops", "against MHA, s ≤ 4"])
