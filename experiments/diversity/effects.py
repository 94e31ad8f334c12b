"""Pairs of configurations and what the error does from the less to the more diverse one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

import numpy as np
import xarray as xr

from sims.diversity import DEFINITIONS, VERSIONS, correlation, indices
from sims.effects import Effect, Families, of_batches
from sims.estimates import common, jackknife, ratio
from sims.study.results import Results

Key = tuple[str, str]
"""Definition and version of an index."""
EVERY: list[Key] = [(definition, version) for version in VERSIONS for definition in DEFINITIONS]
REGIMES = ("pure noise", "exchangeable", "one fixed target", "single index", "redundant views")
SEARCHED = "counterexample"
REGIME_OF = {
    "constant": "pure noise",
    "rbf": "exchangeable",
    "matern": "one fixed target",
    "single_index": "single index",
}
"""Kind of target to the regime, where neither the design nor the frames decide it."""


@dataclass(frozen=True, eq=False)
class Configuration:
    """Heads, and the points at which they were tried: one, or one for each target.

    Attributes:
        label: of the heads.
        points: names of its points.
        errors: iid values of the ensemble's error: one a batch, or one a target draw by theory.
        drawn: whether they are of target draws, which theory has many more of.
        law: the error by first-order theory, over the same targets.
        index: every index that exists, by theory, over the same targets.
    """

    label: str
    points: tuple[str, ...]
    errors: np.ndarray
    drawn: bool
    law: float
    index: Mapping[Key, float]


def effects(results: Results) -> Families:
    """Contrasts of configurations by regime and index, both roads' gaps, and counterexamples."""
    families: Families = {
        f"{regime}, {definition}, {version}": []
        for regime in REGIMES
        for definition, version in EVERY
    }
    for regime in REGIMES:
        for low, high in permutations(configurations(results, regime), 2):
            contrast = fall(low, high)
            for key, rise in rises(low, high).items():
                if rise > 0:
                    family = families[f"{regime}, {key[0]}, {key[1]}"]
                    family.append(replace(contrast, at={"rise": rise}))
    families["indices by both roads"] = list(index_gaps(results))
    families["errors, exchangeable"] = [
        of_batches(label, simulated(results, points) / predicted(results, points) - 1, points)
        for label, points in groups(results, "exchangeable").items()
    ]
    families["steps, exchangeable"] = list(step_gaps(results))
    examples = counterexamples(results)
    families["counterexamples, rise"] = [
        effect for name, pair in examples.items() for effect in error_rises(results, name, *pair)
    ]
    families["counterexamples, ratio"] = [
        ratio_gap(results, name, *pair) for name, pair in examples.items()
    ]
    families["counterexamples, searched anew"] = list(search_gaps(results))
    return families


def regime_of(results: Results, point: str) -> str:
    """The regime of a point, as claims have it."""
    problem = results.problems[point]
    if problem["design"]["kind"] == "redundant_views":
        return "redundant views"
    if problem["heads"]["frames"]["kind"] == "planar":
        return SEARCHED
    return REGIME_OF[problem["target"]["kind"]]


def groups(results: Results, regime: str) -> dict[str, tuple[str, ...]]:
    """Heads' label to their points in a regime, which differ in the target's draw alone."""
    heads: dict[str, tuple[str, ...]] = {}
    for point in results.points:
        if regime_of(results, point) == regime:
            at = results.coordinates[point]
            label = str(at["heads.frames"] or at["design"])
            heads[label] = (*heads.get(label, ()), point)
    return heads


def configurations(results: Results, regime: str) -> list[Configuration]:
    """The configurations of a regime."""
    return [configuration(results, *heads) for heads in groups(results, regime).items()]


def configuration(results: Results, label: str, points: Sequence[str]) -> Configuration:
    """A configuration, with theory's many target draws where there are such."""
    first = results.prediction(points[0])
    signal, noise = predicted_covariances(results, points)
    drawn = "drawn_mse" in first
    if drawn:
        signal = first["drawn_covariance"].values - noise
    errors = first["drawn_mse"].values if drawn else simulated(results, points)
    law = float(errors.mean()) if drawn else predicted(results, points)
    index = indices(signal, noise, first["gram"].values)
    return Configuration(
        label, tuple(points), errors, drawn, law,
        {key: float(value) for key, value in index.items()},
    )  # fmt: skip


def covariances(data: xr.Dataset) -> list[np.ndarray]:
    """Signal and noise covariance of the heads, averaged over queries, (…, H, H) each."""
    return [
        data[f"integrated_{part}_covariance"].transpose(..., "head", "head2").values
        for part in ("signal", "noise")
    ]


def predicted_covariances(results: Results, points: Sequence[str]) -> np.ndarray:
    """First-order :func:`covariances`, averaged over the targets of some points, (2, H, H)."""
    return np.mean([covariances(results.prediction(point)) for point in points], axis=0)


def simulated(results: Results, points: Sequence[str]) -> np.ndarray:
    """The ensemble's simulated error, one a batch: targets share their keys batch by batch."""
    batches = (results.estimates[point]["mse"].values for point in points)
    return np.mean(common(*batches), axis=0)


def predicted(results: Results, points: Sequence[str]) -> float:
    """The ensemble's error by first-order theory, averaged over the targets of some points."""
    return float(np.mean([results.prediction(point)["mse"] for point in points]))


def rises(low: Configuration, high: Configuration) -> dict[Key, float]:
    """By how much each index that both have is larger for the second configuration."""
    return {k: high.index[k] - low.index[k] for k in EVERY if k in low.index and k in high.index}


def fall(low: Configuration, high: Configuration) -> Effect:
    """The relative fall of the error from the first configuration to the second."""
    return of_batches(
        f"{low.label} to {high.label}",
        1 - ratio(high.errors, low.errors),
        # More batches do not help where it is target draws that are few.
        () if low.drawn else (*low.points, *high.points),
        replicates=len(low.errors) if low.drawn else None,
        unit="target draws" if low.drawn else "replicates",
    )


def index_gaps(results: Results) -> Iterator[Effect]:
    """Every index of simulated covariances less that of theory, at every configuration."""
    for regime in (*REGIMES, SEARCHED):
        for label, points in groups(results, regime).items():
            law = indices(*predicted_covariances(results, points))
            each = (covariances(results.estimates[point]) for point in points)
            # Targets share their draws of keys batch by batch.
            signal, noise = (np.mean(common(*parts), axis=0) for parts in zip(*each, strict=True))
            keys = [key for key in indices(signal.mean(0), noise.mean(0)) if key in law]

            def every(means: Mapping[str, np.ndarray], keys: list[Key] = keys) -> np.ndarray:
                index = indices(means["signal"], means["noise"])
                return np.stack([index[key] for key in keys], axis=-1)

            gaps = jackknife({"signal": signal, "noise": noise}, every)
            # Aligned heads are one head: every index is 0 in every batch, not by sampling.
            aligned = np.allclose(correlation(signal + noise), 1.0)
            for key, values in zip(keys, gaps.T, strict=True):
                gap = of_batches(f"{label}: {', '.join(key)}", values - law[key], points)
                yield replace(gap, error=0.0, batches=np.inf) if aligned else gap


def step_gaps(results: Results) -> Iterator[Effect]:
    """The fall of the error between two configurations, simulation less theory for its targets."""
    for low, high in combinations(groups(results, "exchangeable").items(), 2):
        (less, before), (more, after) = low, high
        steps = 1 - ratio(simulated(results, after), simulated(results, before))
        law = 1 - predicted(results, after) / predicted(results, before)
        yield of_batches(f"{less} to {more}", steps - law, (*before, *after))


def search(results: Results) -> xr.Dataset | None:
    """What theory's search came to in this run, by search; see ``searched`` in ``predict.py``."""
    own = (data for data in results.predictions.values() if "searched_ratio" in data)
    return next(own, None)


def counterexamples(results: Results) -> dict[str, tuple[str, str]]:
    """Search to the points of its pair, less and more diverse; without those that have none."""
    own = search(results)
    if own is None:
        return {}
    every = zip(own["search"].values, own["less"].values, own["more"].values, strict=True)
    return {str(name): (str(less), str(more)) for name, less, more in every if less}


def error_rises(results: Results, name: str, less: str, more: str) -> Iterator[Effect]:
    """The relative rise of the error in a counterexample, for every index that should rise."""
    named = results.settings["counterexamples"][name]["indices"]
    low, high = (configuration(results, point, [point]) for point in (less, more))
    rise, contrast = rises(low, high), fall(low, high)
    for key in EVERY if named == "all" else [tuple(index.split(", ")) for index in named]:
        # A pair that the index does not tell apart is no counterexample, whatever the error does.
        apart = rise[key] >= results.settings["resolution"]
        yield contrast.scaled(-1 if apart or contrast.value > 0 else 1)


def error_ratio(results: Results, less: str, more: str) -> np.ndarray:
    """Pseudo-values of the ratio of two points' simulated errors."""
    return ratio(*(results.estimates[point]["mse"].values for point in (more, less)))


def ratio_gap(results: Results, name: str, less: str, more: str) -> Effect:
    """The ratio of simulated errors over that of exact theory, less one."""
    exact = [results.prediction(point, "exact") for point in (less, more)]
    law = float(exact[1]["mse"] / exact[0]["mse"])
    bound = sum(float(terms["mse_error"] / terms["mse"]) for terms in exact)
    return of_batches(name, error_ratio(results, less, more) / law - 1, (less, more), bound=bound)


def search_gaps(results: Results) -> Iterator[Effect]:
    """The ratio that each search came to over that of the pair shown, less one.

    Where no pair is shown: how far the ratio is above 1.
    """
    own, examples = search(results), counterexamples(results)
    if own is None:
        return
    for name in own["search"].values:
        largest = float(own["searched_ratio"].sel(search=name))
        if name in examples:
            less, more = (predicted(results, [point]) for point in examples[name])
            gap = largest / (more / less) - 1
        else:
            gap = max(largest - 1, 0.0)
        yield Effect(name, gap, replicates=0)
