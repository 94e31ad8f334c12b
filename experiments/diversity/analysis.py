"""The order of configurations by diversity against the order by error, regime by regime."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sims import figures
from sims.diversity import DEFINITIONS, correlation
from sims.judgement import Verdict, claim, equivalence, ordering
from sims.results import Results, common, mean_and_error

VERSIONS = ("outputs", "subspaces")
PARTS = {"MSE": "mse", "squared bias": "squared_bias", "variance": "ensemble_variance"}
SHADES = {"supported": "#c7e5d5", "refuted": "#f6cdb8", "inconclusive": "#e6e6e6"}


def regime_of(coordinates: dict[str, Any]) -> str:
    """The regime of a point, as claims have it."""
    if "design" in coordinates:
        return "redundant views"
    if "target.kind" in coordinates:
        return "exchangeable"
    kind = coordinates.get("target", {}).get("kind", "constant")
    names = {"constant": "pure noise", "single_index": "single index"}
    return names.get(kind, "one fixed target")


def configurations(results: Results) -> dict[str, list[list[str]]]:
    """Regime to its configurations; each the points that differ in the target's draw alone."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, at in results.points.items():
        key = repr((at.get("heads.frames"), at.get("design")))
        found.setdefault(regime_of(at), {}).setdefault(key, []).append(name)
    return {regime: list(groups.values()) for regime, groups in found.items()}


def output_covariance(data: Any) -> np.ndarray:
    """Signal and noise covariance of the heads, averaged over queries, (…, H, H)."""
    total = data["integrated_signal_covariance"] + data["integrated_noise_covariance"]
    return total.transpose(..., "head", "head2").values


def index(results: Results, names: list[str], definition: str, version: str) -> float:
    """The index of a configuration, by theory."""
    of = DEFINITIONS[definition]
    if version == "outputs":
        known = results.theory[names[0]]
        if "drawn_covariance" in known:
            return float(of(correlation(known["drawn_covariance"].values)))
        covariances = [output_covariance(results.theory[name]) for name in names]
        return float(of(correlation(np.mean(covariances, axis=0))))
    frames = results.points[names[0]]["heads.frames"]
    if frames["kind"] == "equiangular":
        heads = results.theory[names[0]].sizes["head"]
        cosines = np.full((heads, heads), frames["cosine"])
        np.fill_diagonal(cosines, 1.0)
    else:
        cosines = np.array(frames["gram"])
    # The same Gram matrix in every direction: the mean squared cosine is the entry squared.
    return float(of(cosines**2))


def errors_of(results: Results, names: list[str]) -> np.ndarray:
    """Iid values of the ensemble's error: one a batch, or one a target draw by theory."""
    known = results.theory[names[0]]
    if "drawn_mse" in known:
        return known["drawn_mse"].values
    return results.simulation[names[0]]["mse"].values


def steps(
    results: Results, groups: list[list[str]], of: Callable[[list[str]], float], resolution: float
) -> list[tuple[float, float, int, tuple[str, ...]]]:
    """Relative fall of the MSE at each step up in diversity, its MCSE, iid values, points."""
    ranked = sorted(groups, key=of)
    out = []
    for low, high in pairwise(ranked):
        if of(high) - of(low) < resolution:
            continue
        before, after = common(errors_of(results, low), errors_of(results, high))
        fall, error = mean_and_error((before - after) / before.mean())
        out.append((fall, error, len(before), (*low, *high)))
    return out


def judge(results: Results, experiment) -> list[Verdict]:
    groups = configurations(results)
    random = groups.get("exchangeable", [])
    verdicts = [
        _roads(results, claim(experiment, "hdi", "by both roads")),
        _errors(results, claim(experiment, "hdi", "error by both roads, exchangeable"), random),
    ]
    for chosen in experiment.claims[2:]:
        regime, definition, version = chosen.regime.rsplit(", ", 2)

        def of(names: list[str], definition: str = definition, version: str = version) -> float:
            return index(results, names, definition, version)

        rows = steps(results, groups.get(regime, []), of, experiment.settings["resolution"])
        many = bool(rows) and regime == "exchangeable"
        count = [row[2] for row in rows]
        found = ordering(
            [row[0] for row in rows],
            [row[1] for row in rows],
            margin=chosen.margin,
            level=chosen.level,
            batches=count,
            replicates=min(count) if many else results.replicates,
            # More replicates do not help where it is target draws that are few.
            points=None if many else [row[3] for row in rows],
            fixed=many,
        )
        if many:
            found = replace(found, reason=found.reason.replace("replicates", "target draws"))
        verdicts.append(Verdict.of(chosen, results.experiment, found))
    return verdicts


def _roads(results: Results, chosen: Any) -> Verdict:
    gaps, errors, batches, points = [], [], [], []
    for name, data in results.simulation.items():
        batch = output_covariance(data)
        count = len(batch)
        left_out = (batch.sum(0) - batch) / (count - 1)
        for of in DEFINITIONS.values():
            full = of(correlation(batch.mean(0)))
            pseudo = count * full - (count - 1) * of(correlation(left_out))
            mean, error = mean_and_error(pseudo)
            gaps.append(mean - float(of(correlation(output_covariance(results.theory[name])))))
            errors.append(error)
            batches.append(count)
            points.append(name)
    found = equivalence(
        gaps,
        errors,
        margin=chosen.margin,
        level=chosen.level,
        batches=batches,
        replicates=results.replicates,
        points=points,
    )
    return Verdict.of(chosen, results.experiment, found)


def _errors(results: Results, chosen: Any, groups: list[list[str]]) -> Verdict:
    gaps, errors, batches = [], [], []
    for names in groups:
        means, variances, counts = [], [], []
        for name in names:
            mean, error = mean_and_error(results.simulation[name]["mse"].values)
            means.append(mean)
            variances.append(error**2)
            counts.append(results.batches(name))
        law = np.mean([float(results.theory[name]["mse"]) for name in names])
        gaps.append(np.mean(means) / law - 1)
        # All targets share their draws of keys, so their errors add up at worst.
        errors.append(np.mean(np.sqrt(variances)) / law)
        batches.append(min(counts))
    found = equivalence(
        gaps,
        errors,
        margin=chosen.margin,
        level=chosen.level,
        batches=batches,
        replicates=results.replicates,
        points=[tuple(names) for names in groups],
    )
    return Verdict.of(chosen, results.experiment, found)


def numbers(results: Results) -> dict:
    """Numbers for the caption."""
    return {
        "configurations": len(configurations(results)["pure noise"]),
        "draws": max((d.sizes.get("target", 0) for d in results.theory.values()), default=0),
        "fewest_keys": min(float(1 / (1 / d["n_eff"]).mean()) for d in results.theory.values()),
    }


def figure(results: Results, verdicts: list[Verdict]) -> Figure:
    groups = configurations(results)
    drawing, axes = figures.panels(2, 3, width=figures.PAGE, height=5.2)
    with figures.style():
        grid = axes[0, 0].get_gridspec()
        for ax in axes[0]:
            ax.remove()
        top = drawing.add_subplot(grid[0, :])
        _map(top, {v.regime: v for v in verdicts if v.claim == "hdi-monotone"}, list(groups))
        shown = [r for r in ("pure noise", "one fixed target", "single index") if r in groups]
        for ax, regime in zip(axes[1], shown, strict=False):
            _split(ax, results, groups[regime])
            ax.set_title(regime)
            ax.set_xlabel("index (mean, outputs)")
        axes[1, 0].set_ylabel("share of aligned heads' MSE")
        figures.key(axes[1, 0], list(PARTS), loc="lower left")
        figures.letters([top, *axes[1]])
    return drawing


def _map(ax: Axes, verdicts: dict[str, Verdict], regimes: list[str]) -> None:
    """The verdict of every regime and definition, with its worst step."""
    columns = [(d, v) for v in VERSIONS for d in DEFINITIONS]
    for row, regime in enumerate(regimes):
        for column, (definition, version) in enumerate(columns):
            found = verdicts.get(f"{regime}, {definition}, {version}")
            if found is None:
                continue
            corner = (column - 0.5, row - 0.5)
            ax.add_patch(Rectangle(corner, 1, 1, fc=SHADES[found.verdict], ec="white", lw=2))
            effect = "" if found.effect is None else f"{100 * found.effect:+.2f} %"
            words = f"{found.verdict}\n{effect}".replace("-", "−")
            ax.text(column, row, words, ha="center", va="center", fontsize=6)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(regimes) - 0.5, -0.5))
    ax.set_xticks(range(len(columns)), [f"{d},\n{v}" for d, v in columns], fontsize=6.5)
    ax.set_yticks(range(len(regimes)), regimes)
    ax.tick_params(length=0)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.set_title("does the error fall at every step up in the index? (worst step)")


def _split(ax: Axes, results: Results, groups: list[list[str]]) -> None:
    """Error and its two parts against the index; the line joins equiangular heads."""
    keys = np.array([index(results, names, "mean", "outputs") for names in groups])
    first = [names[0] for names in groups]
    even = [
        k for k, n in enumerate(first)
        if results.points[n]["heads.frames"]["kind"] == "equiangular"
    ]  # fmt: skip
    scale = float(results.theory[first[int(np.argmin(keys))]]["mse"])
    for place, term in enumerate(PARTS.values()):
        color, marker = figures.PALETTE[place], figures.MARKERS[place]
        line = np.array([float(results.theory[n][term]) for n in first]) / scale
        order = sorted(even, key=lambda k: keys[k])
        figures.theory(ax, keys[order], line[order], color)
        for k, name in enumerate(first):
            data = results.simulation[name]
            figures.simulated(
                ax,
                keys[k],
                float(data[term].mean()) / scale,
                float(data[f"{term}_mcse"]) / scale,
                color,
                marker,
                markerfacecolor="white" if k in even else color,
            )
    ax.set_ylim(bottom=0)
