"""The order of configurations by diversity against the order by error, regime by regime."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from sims import figures
from sims.diversity import DEFINITIONS, VERSIONS, correlation, indices
from sims.judgement import Evidence, Verdict, equivalence, identity, ordering
from sims.results import Results, common, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEARCHED = "counterexample"
EVERY = [(definition, version) for version in VERSIONS for definition in DEFINITIONS]
PARTS = {"MSE": "mse", "squared bias": "squared_bias", "variance": "ensemble_variance"}
SHADES = {"supported": "#c7e5d5", "refuted": "#f6cdb8", "inconclusive": "#e6e6e6"}
MARKS = {"supported": "✓", "refuted": "✗", "inconclusive": "?"}
Pair = tuple[list[str], list[str]]


def regime_of(coordinates: dict[str, Any]) -> str:
    """The regime of a point, as claims have it."""
    if "design" in coordinates:
        return "redundant views"
    if coordinates["heads.frames"]["kind"] == "planar":
        return SEARCHED
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


def covariances(data: Any) -> list[np.ndarray]:
    """Signal and noise covariance of the heads, averaged over queries, (…, H, H) each."""
    return [
        data[f"integrated_{part}_covariance"].transpose(..., "head", "head2").values
        for part in ("signal", "noise")
    ]


def known(results: Results, names: list[str], drawn: bool = True) -> dict[tuple[str, str], float]:
    """Every index of a configuration that exists, by theory: (definition, version) to HDI.

    Over theory's many target draws where there are such, or (``drawn=False``) the simulated ones.
    """
    all_of = [results.theory[name] for name in names]
    signal, noise = np.mean([covariances(data) for data in all_of], axis=0)
    if drawn and "drawn_covariance" in all_of[0]:
        signal = all_of[0]["drawn_covariance"].values - noise
    gram = all_of[0]["gram"].values
    return {key: float(value) for key, value in indices(signal, noise, gram).items()}


def simulated(results: Results, names: list[str]) -> np.ndarray:
    """The ensemble's simulated error, one a batch: targets share their keys batch by batch."""
    return np.mean(common(*(results.simulation[name]["mse"].values for name in names)), axis=0)


def errors_of(results: Results, names: list[str]) -> np.ndarray:
    """Iid values of the ensemble's error: one a batch, or one a target draw by theory."""
    data = results.theory[names[0]]
    return data["drawn_mse"].values if "drawn_mse" in data else simulated(results, names)


def predicted(results: Results, names: list[str], drawn: bool = True) -> float:
    """The ensemble's error by theory, averaged over targets as in :func:`known`."""
    data = results.theory[names[0]]
    if drawn and "drawn_mse" in data:
        return float(data["drawn_mse"].mean())
    return float(np.mean([float(results.theory[name]["mse"]) for name in names]))


def pairs(results: Results, groups: list[list[str]], resolution: float) -> dict[Any, list[Pair]]:
    """Index to all pairs that it tells apart: less and more diverse configuration."""
    values = [known(results, names) for names in groups]
    return {
        key: [
            (low, high)
            for low, a in zip(groups, values, strict=True)
            for high, b in zip(groups, values, strict=True)
            if key in a and key in b and b[key] - a[key] >= resolution
        ]
        for key in EVERY
    }


def fall(low: np.ndarray, high: np.ndarray) -> tuple[float, float, int]:
    """Relative fall of the mean from the first to the second, its standard error, iid values."""
    before, after = common(low, high)
    ratio = after.mean() / before.mean()
    return 1 - ratio, mean_and_error((after - ratio * before) / before.mean())[1], len(before)


def searches(results: Results) -> Any:
    """What theory's search found in this run, by search; see ``searched`` in ``predict.py``."""
    found = [data for data in results.theory.values() if "searched_ratio" in data]
    return found[0] if found else None


def counterexamples(results: Results) -> dict[str, tuple[str, str]]:
    """Search to the points of its pair, less and more diverse; without those that found none."""
    found = searches(results)
    if found is None:
        return {}
    every = zip(found["search"].values, found["less"].values, found["more"].values, strict=True)
    return {str(name): (str(less), str(more)) for name, less, more in every if less}


def judge(results: Results, experiment: Any) -> list[Verdict]:
    groups = configurations(results)
    told = {
        regime: pairs(results, found, experiment.settings["resolution"])
        for regime, found in groups.items()
        if regime != SEARCHED
    }
    judged = {
        "by both roads": _roads,
        "error by both roads, exchangeable": _errors,
        "steps by both roads, exchangeable": _steps,
        "counterexamples, the error rises": _rises,
        "counterexamples, by both roads": _ratios,
        "counterexamples, searched anew": _searched,
    }
    verdicts = []
    for chosen in experiment.claims:
        if chosen.id == "hdi":
            found = judged[chosen.regime](results, experiment, chosen)
        else:
            regime, definition, version = chosen.regime.rsplit(", ", 2)
            found = _falls(results, chosen, told.get(regime, {}).get((definition, version), []))
        verdicts.append(Verdict.of(chosen, results.experiment, found))
    return verdicts


def _falls(results: Results, chosen: Any, steps: list[Pair]) -> Any:
    many = bool(steps) and "drawn_mse" in results.theory[steps[0][0][0]]
    rows = [fall(*(errors_of(results, names) for names in pair)) for pair in steps]
    count = [row[2] for row in rows]
    evidence = Evidence(
        np.array([row[0] for row in rows]),
        np.array([row[1] for row in rows]),
        np.array(count),
        min(count) if many else results.replicates,
        # More replicates do not help where it is target draws that are few.
        None if many else tuple((*low, *high) for low, high in steps),
        fixed=many,
    )
    found = ordering(evidence, margin=chosen.margin, level=chosen.level)
    if many:
        found = replace(found, reason=found.reason.replace("replicates", "target draws"))
    return found


def _decided(decide: Any, results: Results, chosen: Any, rows: list[Any], bounds: Any = 0.0) -> Any:
    """Rows: effect, its error, batches, points."""
    value, error, batches = (np.array([row[k] for row in rows]) for k in range(3))
    points = tuple(row[3] for row in rows)
    evidence = Evidence(value, error, batches, results.replicates, points, bounds=bounds)
    return decide(evidence, margin=chosen.margin, level=chosen.level)


def _roads(results: Results, experiment: Any, chosen: Any) -> Any:
    rows = []
    for groups in configurations(results).values():
        for names in groups:
            law = known(results, names, drawn=False)
            of_each = [covariances(results.simulation[name]) for name in names]
            # Targets share their draws of keys batch by batch.
            batch = [np.mean(common(*parts), axis=0) for parts in zip(*of_each, strict=True)]
            count = len(batch[0])
            full = indices(*(part.mean(0) for part in batch))
            left_out = indices(*((part.sum(0) - part) / (count - 1) for part in batch))
            # Aligned heads are one head: every index is 0 in every batch, not by sampling.
            one = np.allclose(correlation(sum(batch)), 1.0)
            for key in (k for k in EVERY if k in full and k in left_out and k in law):
                mean, error = mean_and_error(count * full[key] - (count - 1) * left_out[key])
                sampled = (0.0, np.inf) if one else (error, count)
                rows.append((mean - law[key], *sampled, tuple(names)))
    return _decided(equivalence, results, chosen, rows)


def _errors(results: Results, experiment: Any, chosen: Any) -> Any:
    rows = []
    for names in configurations(results).get("exchangeable", []):
        batch = simulated(results, names) / predicted(results, names, drawn=False)
        mean, error = mean_and_error(batch)
        rows.append((mean - 1, error, len(batch), tuple(names)))
    return _decided(equivalence, results, chosen, rows)


def _steps(results: Results, experiment: Any, chosen: Any) -> Any:
    rows = []
    for low, high in combinations(configurations(results).get("exchangeable", []), 2):
        found, error, count = fall(simulated(results, low), simulated(results, high))
        law = 1 - predicted(results, high, drawn=False) / predicted(results, low, drawn=False)
        rows.append((found - law, error, count, (*low, *high)))
    return _decided(equivalence, results, chosen, rows)


def _rises(results: Results, experiment: Any, chosen: Any) -> Any:
    rows = []
    for name, pair in counterexamples(results).items():
        indices_of = experiment.settings["counterexamples"][name]["indices"]
        low, high = (known(results, [point]) for point in pair)
        for key in EVERY if indices_of == "all" else [tuple(i.split(", ")) for i in indices_of]:
            value, error, count = fall(*(errors_of(results, [point]) for point in pair))
            # A pair that the index does not tell apart is no counterexample.
            told = high[key] - low[key] >= experiment.settings["resolution"]
            rows.append((-value if told else -abs(value), error, count, pair))
    return _decided(ordering, results, chosen, rows)


def _ratios(results: Results, experiment: Any, chosen: Any) -> Any:
    rows, slack = [], []
    for pair in counterexamples(results).values():
        value, error, count = fall(*(errors_of(results, [point]) for point in pair))
        known_to = [results.theory[point][["exact_mse", "exact_mse_error"]] for point in pair]
        less, more = (float(data["exact_mse"]) for data in known_to)
        slack.append(sum(float(data["exact_mse_error"] / data["exact_mse"]) for data in known_to))
        rows.append(((1 - value) / (more / less) - 1, error / (more / less), count, pair))
    return _decided(equivalence, results, chosen, rows, slack)


def _searched(results: Results, experiment: Any, chosen: Any) -> Any:
    found, shown, gaps = searches(results), counterexamples(results), []
    for name in [] if found is None else found["search"].values:
        ratio = float(found["searched_ratio"].sel(search=name))
        if name in shown:
            less, more = (predicted(results, [point]) for point in shown[name])
            gaps.append(ratio / (more / less) - 1)
        else:
            gaps.append(max(ratio - 1, 0.0))
    return identity(gaps, margin=chosen.margin, level=chosen.level)


def numbers(results: Results) -> dict[str, Any]:
    """Numbers for the caption."""
    found = searches(results)
    none = [] if found is None else found["searched_ratio"].values[found["less"].values == ""]
    return {
        "configurations": len(configurations(results)["pure noise"]),
        "draws": max((d.sizes.get("target", 0) for d in results.theory.values()), default=0),
        "fewest_keys": min(float(1 / (1 / d["n_eff"]).mean()) for d in results.theory.values()),
        "tried": 0 if found is None else int(found["tried"].sum()),
        "most_without": float(max(none, default=np.nan)),
    }


def figure(results: Results, verdicts: list[Verdict]) -> Figure:
    groups, examples = configurations(results), counterexamples(results)
    regimes = [regime for regime in groups if regime != SEARCHED]
    drawing, axes = figures.panels(1, 1, width=figures.PAGE, height=7.2)
    axes[0, 0].remove()
    with figures.style():
        parts: Any = drawing.subfigures(3, 1, height_ratios=(3.8, 2.1, 1.15))
        upper, middle, lower = parts
        top = upper.subplots()
        _map(top, results, {v.regime: v for v in verdicts if v.claim == "hdi-monotone"}, regimes)
        shown = [r for r in ("pure noise", "one fixed target", "single index") if r in groups]
        below = middle.subplots(1, len(shown), squeeze=False)[0]
        for ax, regime in zip(below, shown, strict=True):
            _split(ax, results, groups[regime])
            ax.set_title(regime)
            ax.set_xlabel("index (mean, total)")
        below[0].set_ylabel("share of aligned heads' MSE")
        figures.key(below[0], list(PARTS), loc="lower left")
        last = lower.subplots(1, max(len(examples), 1), squeeze=False)[0]
        for ax, (name, pair) in zip(last, examples.items(), strict=False):
            _example(ax, results, name, pair)
        figures.letters([top, *below, last[0]])
    return drawing


def _map(ax: Axes, results: Results, verdicts: dict[str, Verdict], regimes: list[str]) -> None:
    """Every index and regime: the verdict, or theory's answer where the ledger has no claim."""
    order = [(d, v) for v in ("total", "geometric", "noise", "signal") for d in DEFINITIONS]
    groups, examples = configurations(results), counterexamples(results)
    found = searches(results)
    resolution = np.inf if found is None else found.attrs["resolution"]
    searched = ["three lines,\nnoise alone", "two lines,\none wave"] if examples else []
    columns = [*regimes, *searched]
    for column, regime in enumerate(columns):
        told = pairs(results, groups[regime], resolution) if regime in groups else {}
        for row, (definition, version) in enumerate(order):
            verdict = verdicts.get(f"{regime}, {definition}, {version}")
            words, fill, style = "–", "white", "italic"
            if verdict is not None:
                style = "normal"
                fill = SHADES[verdict.verdict]
                words = MARKS[verdict.verdict]
                if verdict.effect is not None:
                    words += f"  {_percent(-verdict.effect)}"
            elif told.get((definition, version)):
                worst = min(
                    1 - predicted(results, high) / predicted(results, low)
                    for low, high in told[definition, version]
                )
                words = _percent(-worst)
            elif regime not in groups:
                # Under noise alone the total index is that of noise.
                known = f"{definition}, {'noise' if version == 'total' else version}"
                pair = examples.get("one wave" if "wave" in regime else known)
                if pair:
                    value = fall(*(errors_of(results, [point]) for point in pair))[0]
                    words, fill, style = f"✗  {_percent(-value)}", SHADES["refuted"], "normal"
            ax.bar(column, 1, 1, row - 0.5, color=fill, ec="0.85", lw=0.8)
            ax.text(column, row, words, ha="center", va="center", fontsize=6, fontstyle=style,
                    color="black" if style == "normal" else "0.35")  # fmt: skip
    for row in (4, 8, 12):
        ax.axhline(row - 0.5, color="black", lw=0.8)
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(order) - 0.5, -0.5))
    ax.set_yticks(range(len(order)), [f"{d}, {v}" for d, v in order], fontsize=6.5)
    names = [c if "\n" in c else c.replace(" ", "\n", 1) for c in columns]
    ax.set_xticks(range(len(columns)), names, fontsize=6.5)
    ax.xaxis.tick_top()
    ax.set_title("change of the MSE from a less to a more diverse configuration, worst pair")
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)


def _percent(value: float) -> str:
    """With sign, two digits below 10 %; a factor where it more than doubles."""
    if value > 1:
        return f"× {1 + value:.2g}"
    digits = 1 if abs(value) < 0.0995 else 0
    return f"{100 * value:+.{digits}f} %".replace("-", "−")


def _split(ax: Axes, results: Results, groups: list[list[str]]) -> None:
    """Error and its two parts against the index; the line joins equiangular heads."""
    keys = np.array([known(results, names)["mean", "total"] for names in groups])
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


def _example(ax: Axes, results: Results, name: str, pair: tuple[str, str]) -> None:
    """Both sets of lines of a counterexample, and the ratio of their errors by both roads."""
    for k, point in enumerate(pair):
        angles = np.deg2rad(results.points[point]["heads.frames"]["angles"])
        for angle in np.unique(angles):
            x, y = np.cos(angle), np.sin(angle)
            ax.plot(
                [3 * k - x, 3 * k + x], [-y, y], color=figures.PALETTE[k],
                # As many lines as lie on one another.
                lw=1.1 * np.sum(angles == angle), solid_capstyle="butt",
            )  # fmt: skip
    ax.text(1.5, 0, "→", ha="center", va="center")
    value, error, _ = fall(*(errors_of(results, [point]) for point in pair))
    less, more = (predicted(results, [point]) for point in pair)
    digits = 3 if more / less < 10 else 1
    ax.set_title(
        name.replace(", ", ",\n") if ", " in name else "all sixteen,\none wave", fontsize=6.5
    )
    ratios = f"× {more / less:.{digits}f}\n× {1 - value:.{digits}f} ± {2 * error:.{digits}f}"
    ax.text(1.5, -1.3, ratios, ha="center", va="top", fontsize=6)
    ax.set(xlim=(-1.1, 4.1), ylim=(-2.7, 1.1), aspect="equal")
    ax.axis("off")
