"""Pairs of configurations and what the error does from the less to the more diverse one."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import xarray as xr

from sims.diversity import DEFINITIONS, correlation, indices, normalised_errors
from sims.effects import Effect, Families, of_batches
from sims.estimates import jackknife, mcse, ratio
from sims.study.results import Results

from .regimes import EACH, SIXTEEN

Key = tuple[str, str]
"""Definition and version of an index."""
Arrays = Mapping[str, np.ndarray]
"""Products of errors, products of biases and noise covariances, (…, configuration, head, head2)."""
EVERY: list[Key] = [
    (definition, version)
    for version in ("total", "geometric", "noise", "errors")
    for definition in DEFINITIONS
]
"""The indices of a regime; that of signals is left out, as a constant m has none."""
APART = 5.0
"""Standard errors by which the indices of two configurations have to differ for their order to be
taken as known."""


def effects(results: Results) -> Families:
    """Rises of the error by regime and index, gaps between the roads, and counterexamples."""
    families: dict[str, list[Effect]] = defaultdict(list)
    own = results.settings["regimes"]
    equal = [name for name, regime in own.items() if regime.get("equal_heads")]
    for name, theory in results.predictions.items():
        if name not in own:
            continue
        gram, law = theory["grams"].values, predicted(theory)
        labels = [str(label) for label in theory["label"].values]
        data = simulated(results, name)
        change = relative_rises if name in equal else rises
        pairs = jackknife(data, change)
        index = {key: jackknife(data, index_of(key, gram)) for key in EVERY}
        for key, values in index.items():
            families[f"{name}, {', '.join(key)}"] = list(risen(name, labels, pairs, values))
        ordered = [
            (low, high) for low, high in permutations(range(len(labels)), 2)
            if majorizes(gram[low], gram[high]) and theory["one_angle"].values[[low, high]].all()
        ]  # fmt: skip
        families[f"{name}, equal heads"] = varying(name, labels, jackknife(data, head_errors))
        if own[name].get("each"):
            families |= target_by_target(results, name, ordered)
        else:
            families[f"{name}, majorized"] = [
                of_batches(f"{labels[low]} to {labels[high]}", pairs[:, low, high], name)
                for low, high in ordered
            ]
            families[f"{name}, top is tight"] = varying(name, labels, jackknife(data, over_top))
        families |= at_worst(name, theory)
        families["algebra"].append(Effect(name, values=algebra(data), replicates=0))
        kernel = "softmax" if "softmax" in name else "gaussian"
        for family, statistic in (("errors", log_error), ("gains", relative_errors)):
            values, known = jackknife(data, statistic), jackknife(law, statistic)
            families[f"{family} by both roads, {kernel}"] += varying(name, labels, values, known)
        for key in EVERY:
            if key in SIXTEEN and key[1] != "geometric":
                at = [f"{label}: {', '.join(key)}" for label in labels]
                known = jackknife(law, index_of(key, gram))
                families["indices by both roads"] += varying(name, at, index[key], known)
    examples = counterexamples(results)
    for name, pair in examples.items():
        families["counterexamples, rise"] += error_rises(results, name, *pair)
        families["counterexamples, ratio"].append(ratio_gap(results, name, *pair))
    families["counterexamples, searched anew"] = list(search_gaps(results))
    return dict(families)


def target_by_target(
    results: Results, regime: str, ordered: Sequence[tuple[int, int]]
) -> dict[str, list[Effect]]:
    """The largest rise and the largest shortfall of a target, on average over targets.

    Half of a target's draws chooses the pair of configurations, or the configuration and the top
    eigenvector ``v``; the other half says by how much the error rises, or falls short of
    ``v'Mv/H``; and the other way round. The best choice would be no smaller: the average is a
    lower bound of the largest.

    Args:
        results: of the experiment.
        regime: one whose targets are drawn one a batch.
        ordered: pairs of configurations between which the error is not to rise.
    """
    name = EACH.format(regime)
    errors = results.estimates[name]["target_error_matrix"].values
    rise, short = [], []
    low, high = np.transpose(ordered)
    for chosen, judged in ((errors[:, 0], errors[:, 1]), (errors[:, 1], errors[:, 0])):
        first, second = (rises({"error_matrix": m})[:, low, high] for m in (chosen, judged))
        rise.append(at_largest(first, second))
        _, vectors = np.linalg.eigh(chosen)
        top = vectors[..., -1]
        first, second = (
            1 - m.mean((-2, -1)) * m.shape[-1] / np.einsum("bch,bchg,bcg->bc", top, m, top)
            for m in (chosen, judged)
        )
        short.append(at_largest(first, second))
    return {
        f"{regime}, {family}": [of_batches("a target", np.mean(values, 0), name, unit="targets")]
        for family, values in (("majorized", rise), ("top is tight", short))
    }


def at_worst(regime: str, theory: xr.Dataset) -> Families:
    """By index, the largest rise that theory's search found; four standard errors are its bound."""
    families: dict[str, list[Effect]] = {}
    if "worst_rise" not in theory:
        return families
    for index, rises in zip(theory["worst_index"].values, theory["worst_rise"].values, strict=True):
        bound = float(4 * mcse(rises))
        effect = Effect(f"{regime}, {index}", float(rises.mean()), bound=bound, replicates=0)
        families[f"{regime}, {index}, any configurations"] = [effect]
    return families


def at_largest(chosen: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """The entry of each row of ``judged`` (B, k) at the place of the largest of ``chosen``."""
    return np.take_along_axis(judged, chosen.argmax(1)[:, None], 1)[:, 0]


def simulated(results: Results, regime: str) -> Arrays:
    """A regime's batches, (B, configuration, head, head2) each."""
    data = results.estimates[regime]
    return {name: data[name].values for name in ("error_matrix", "bias_matrix", "noise_matrix")}


def predicted(theory: xr.Dataset) -> Arrays:
    """A regime's expectations by first-order theory, in the form of the simulation's batches."""
    bias, signal, noise = (theory[f"{k}_matrix"].values for k in ("bias", "signal", "noise"))
    return {
        "error_matrix": bias + signal + noise, "bias_matrix": bias, "noise_matrix": noise,
    }  # fmt: skip


def mean_error(means: Arrays) -> np.ndarray:
    """The ensemble's mean squared error, ``1ᵀM1/H²``."""
    return np.asarray(means["error_matrix"].mean((-2, -1)))


def head_error(means: Arrays) -> np.ndarray:
    """The mean of the heads' own mean squared errors, ``tr M/H``."""
    errors = means["error_matrix"]
    return np.asarray(np.trace(errors, axis1=-2, axis2=-1) / errors.shape[-1])


def log_error(means: Arrays) -> np.ndarray:
    """The logarithm of the ensemble's error: its differences are relative."""
    return np.log(mean_error(means))


def relative_errors(means: Arrays) -> np.ndarray:
    """The ensemble's error over the mean of its heads'."""
    return mean_error(means) / head_error(means)


def head_errors(means: Arrays) -> np.ndarray:
    """The mean head error over that of the first configuration, less 1."""
    own = head_error(means)
    return own / own[..., :1] - 1


def over_top(means: Arrays) -> np.ndarray:
    """The ensemble's error over its bound by the largest eigenvalue of M, ``λ_max/H``, less 1."""
    return mean_error(means) * means["error_matrix"].shape[-1] / largest(means) - 1


def largest(means: Arrays) -> np.ndarray:
    """The largest eigenvalue of M."""
    return np.asarray(np.linalg.eigvalsh(means["error_matrix"])[..., -1])


def rises(means: Arrays) -> np.ndarray:
    """By how much the ensemble's error rises from each configuration to each, (…, from, to)."""
    error = mean_error(means)
    return np.asarray(error[..., None, :] / error[..., :, None] - 1)


def relative_rises(means: Arrays) -> np.ndarray:
    """The same of the error over the mean head error.

    Its expectation is that of :func:`rises` where each head's law is the same in all
    configurations; sampling errors that all heads share cancel.
    """
    error = relative_errors(means)
    return np.asarray(error[..., None, :] / error[..., :, None] - 1)


def index_of(key: Key, gram: np.ndarray) -> Callable[[Arrays], np.ndarray]:
    """The index as a function of expectations, (…, configuration)."""
    definition, version = key

    def index(means: Arrays) -> np.ndarray:
        if version == "geometric":
            matrix = np.broadcast_to(gram, means["error_matrix"].shape)
        elif version == "errors":
            matrix = normalised_errors(means["error_matrix"])
        else:
            noise = means["noise_matrix"]
            matrix = correlation(
                noise if version == "noise" else means["error_matrix"] - means["bias_matrix"]
            )
        return DEFINITIONS[definition](matrix)

    return index


def risen(
    point: str, labels: Sequence[str], rises: np.ndarray, index: np.ndarray
) -> Iterator[Effect]:
    """The rise of the error in every pair, from the less to the more diverse configuration.

    Args:
        point: the regime's.
        labels: of the C configurations.
        rises: pseudo-values (B, C, C).
        index: pseudo-values (B, C).

    Where the order of a pair by the index is not known, it counts as a rise of zero that may be off
    by all that the error changes; where the two indices are one number, there is no order.
    """
    for first, second in combinations(range(len(labels)), 2):
        apart = index[:, second] - index[:, first]
        if np.abs(apart).max() < 1e-9:
            continue
        known = abs(apart.mean()) > APART * mcse(apart)
        low, high = (first, second) if apart.mean() > 0 else (second, first)
        rise = of_batches(f"{labels[low]} to {labels[high]}", rises[:, low, high], point)
        # More batches bring the order out.
        unknown = replace(rise, value=0.0, bound=abs(rise.value), narrowing=True)
        yield rise if known else unknown


def majorizes(less: np.ndarray, more: np.ndarray) -> bool:
    """Whether the squared cosines of one Gram matrix weakly majorize those of another, unequal one.

    The sums of the k largest are at least as large, for every k.
    """
    pairs = np.triu_indices(len(less), 1)
    sums = [np.cumsum(np.sort(gram[pairs])[::-1]) for gram in (less, more)]
    return bool((sums[0] >= sums[1] - 1e-9).all() and np.abs(sums[0] - sums[1]).max() > 1e-9)


def varying(
    point: str, labels: Sequence[str], values: np.ndarray, law: np.ndarray | None = None
) -> list[Effect]:
    """One effect a configuration, less the law if there is one.

    Aligned heads are one head: what is 0 or 1 for them in every batch is left out.

    Args:
        point: the regime's.
        labels: of the configurations.
        values: pseudo-values (B, C).
        law: those of theory's sets of draws, (S, C); four of its standard errors are a bound.
    """
    law = np.zeros((2, len(labels))) if law is None else law
    bounds = 4 * mcse(law)
    return [
        of_batches(f"{point}, {label}", each - known.mean(), point, bound=float(bound))
        for label, each, known, bound in zip(labels, values.T, law.T, bounds, strict=True)
        if np.ptp(each) > 1e-9
    ]


def algebra(data: Arrays) -> np.ndarray:
    """What two identities leave of the batches' matrices of errors, in units of rounding.

    ``MSE = μ (1 − (1 − 1/H) mean)`` is one, with μ the mean head error and the index `mean` of
    errors; the other, ``MSE ≤ μ (1 − (1 − 1/H) top)``, leaves what it is short of.
    """
    heads = data["error_matrix"].shape[-1]
    relative = relative_errors(data)
    matrix = normalised_errors(data["error_matrix"])
    shares = [1 - (1 - 1 / heads) * DEFINITIONS[name](matrix) for name in ("mean", "top")]
    gaps = np.abs(relative - shares[0]), np.maximum(relative - shares[1], 0)
    return np.stack(gaps) / np.finfo(float).eps


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
    low, high = (point_indices(results, point) for point in (less, more))
    rise = of_batches(f"{less} to {more}", error_ratio(results, less, more) - 1, (less, more))
    for key in SIXTEEN if named == "all" else [tuple(index.split(", ")) for index in named]:
        # A pair that the index does not tell apart is no counterexample, whatever the error does.
        apart = high[key] - low[key] >= results.settings["resolution"]
        yield rise if apart or rise.value < 0 else rise.scaled(-1)


def point_indices(results: Results, point: str) -> dict[Key, np.ndarray]:
    """Every index of a grid point, by first-order theory."""
    data = results.prediction(point)
    signal, noise = (data[f"integrated_{part}_covariance"].values for part in ("signal", "noise"))
    return indices(signal, noise, data["gram"].values)


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
            less, more = (float(results.prediction(p)["mse"]) for p in examples[name])
            gap = largest / (more / less) - 1
        else:
            gap = max(largest - 1, 0.0)
        yield Effect(name, gap, replicates=0)
