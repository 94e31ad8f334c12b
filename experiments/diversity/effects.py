"""Pairs of configurations and what the error does from the less to the more diverse one."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import xarray as xr

from sims.diversity import DEFINITIONS, indices, normalised_errors
from sims.effects import Effect, Families, of_batches
from sims.estimates import jackknife, mcse, ratio
from sims.study.results import Results

from .drawn import over_drawn_frames
from .quantities import (
    APART,
    CONTINUOUS,
    Arrays,
    Key,
    falls,
    head_errors,
    index_of,
    keys_of,
    log_error,
    of_all,
    over_equiangular,
    over_equiangular_each,
    over_top,
    predicted,
    relative_errors,
    relative_rises,
    rises,
    simulated,
    variance_share,
)
from .regimes import EACH, SIXTEEN, with_drawn_frames
from .trend import trends

INTERPOLATION = 5e-4
"""Relative error of equiangular heads' error between listed ones, at most; for 0.3 ≤ cos θ ≤ 0.92.

By entropy three heads and one are as diverse as equiangular ones of up to 0.94: off by 0.1 %."""


def effects(results: Results) -> Families:
    """The error at equal diversity, or its rises, by regime and index; gaps between the roads."""
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
        keys = keys_of(own[name])
        index = of_all(keys, data, gram)
        even = np.array([label.startswith("equiangular") for label in labels])
        smooth = [key for key in keys if name in equal and even.any() and key[0] in CONTINUOUS]
        for key, found in at_equal_diversity(name, smooth, labels, data, gram).items():
            families[f"{name}, {', '.join(key)}"] = found
        rise = Rises(name, labels, pairs)
        for key in [key for key in keys if key not in smooth]:
            families[f"{name}, {', '.join(key)}"] = list(rise.along(index[key]))
        if "only" in own[name]:
            continue
        one_angle = np.flatnonzero(theory["one_angle"].values).tolist()
        ordered = [
            pair for pair in permutations(one_angle, 2) if majorizes(*(gram[k] for k in pair))
        ]
        if even.any():
            families[f"{name}, equiangular heads"] = opening(name, labels, data, gram)
            families |= trends(name, labels, index, data, equal=name in equal)
        families[f"{name}, equal heads"] = varying(name, labels, jackknife(data, head_errors))
        if own[name].get("each"):
            families |= target_by_target(results, name, ordered)
            family = f"{name}, equiangular heads, target by target"
            families[family] = [opening_for_a_target(results, name, labels, gram)]
        else:
            families[f"{name}, majorized"] = [
                of_batches(f"{labels[low]} to {labels[high]}", pairs[:, low, high], name)
                for low, high in ordered
            ]
            families[f"{name}, top is tight"] = varying(name, labels, jackknife(data, over_top))
        if "worst_rise" in theory:
            families[f"{name}, no worse pair"] = list(worse_pairs(name, theory, labels, law, gram))
        families["algebra"].append(Effect(name, values=algebra(data), replicates=0))
        kernel, share = "softmax" if "softmax" in name else "gaussian", variance_share(law)
        for family, statistic in (("errors", log_error), ("gains", relative_errors)):
            values, known = jackknife(data, statistic), jackknife(law, statistic)
            family = f"{family} by both roads, {kernel}"
            families[family] += varying(name, labels, values, known, share)
        for key in keys:
            if key[0] in CONTINUOUS and key[1] not in ("geometric", "signal"):
                at = [f"{label}: {', '.join(key)}" for label in labels]
                known = jackknife(law, index_of(key, gram))
                families["indices by both roads"] += varying(name, at, index[key], known)
    for name in with_drawn_frames(results.settings):
        families[f"{name}, random frames drawn"] = over_drawn_frames(results, name)
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


def at_equal_diversity(
    regime: str, keys: Sequence[Key], labels: Sequence[str], data: Arrays, gram: np.ndarray
) -> dict[Key, list[Effect]]:
    """Of every index an effect an uneven configuration: its error over equiangular heads', less 1.

    Over that of equiangular heads which are equally diverse by this index.
    """
    if not keys:
        return {}
    even = np.array([label.startswith("equiangular") for label in labels])
    values = jackknife(data, over_equiangular_each(keys, gram, even))
    uneven = [label for label, is_even in zip(labels, even, strict=True) if not is_even]
    return {
        key: [
            of_batches(f"{regime}, {label}", each, regime, bound=INTERPOLATION)
            for label, each in zip(uneven, values[..., place].T, strict=True)
        ]
        for place, key in enumerate(keys)
    }


def opening(regime: str, labels: Sequence[str], data: Arrays, gram: np.ndarray) -> list[Effect]:
    """One effect a step as equiangular heads open: by how much the error falls, as a share of it.

    Steps are between neighbours of the list in the order of their common angle. It is the error
    itself, not that over the heads' own; draws are common to both ends of a step.
    """
    order = in_order(labels, gram)
    steps = zip(order[:-1], order[1:], jackknife(data, falls(order)).T, strict=True)
    return [of_batches(f"{labels[a]} to {labels[b]}", each, regime) for a, b, each in steps]


def in_order(labels: Sequence[str], gram: np.ndarray) -> np.ndarray:
    """Places of the equiangular configurations, from aligned heads to orthogonal ones."""
    even = np.flatnonzero([label.startswith("equiangular") for label in labels])
    return even[np.argsort(-gram[even, 0, 1], kind="stable")]


def opening_for_a_target(
    results: Results, regime: str, labels: Sequence[str], gram: np.ndarray
) -> Effect:
    """The least fall of a target's error at any step as equiangular heads open, over targets.

    Half of a target's draws chooses the step, the other half says by how much the error falls
    there, and the other way round: on average an upper bound of the least fall.
    """
    name = EACH.format(regime)
    errors = results.estimates[name]["target_error_matrix"].values
    first, second = (
        falls(in_order(labels, gram))({"error_matrix": errors[:, half]}) for half in (0, 1)
    )
    least = [-at_largest(-chosen, -judged) for chosen, judged in ((first, second), (second, first))]
    return of_batches("a target", np.mean(least, 0), name, unit="targets")


def worse_pairs(
    regime: str, theory: xr.Dataset, labels: Sequence[str], law: Arrays, gram: np.ndarray
) -> Iterator[Effect]:
    """By how much the worst pair that theory's search found is worse than the listed ones.

    One effect an index, by first-order theory: the largest rise between any two configurations less
    the largest between an uneven one of the list and equiangular heads equally diverse. Four
    standard errors of theory's sets of draws are a bound. Indices of subspaces are left out.
    """
    even = np.array([label.startswith("equiangular") for label in labels])
    for index, worst in zip(theory["worst_index"].values, theory["worst_rise"].values, strict=True):
        definition, version = str(index).split(", ")
        if version == "geometric":
            continue
        gaps = jackknife(law, over_equiangular((definition, version), gram, even))
        # From the better to the worse of the two, whichever is equiangular.
        listed = np.where(gaps > 0, gaps, -gaps / (1 + gaps))
        worse = worst - listed[:, listed.mean(0).argmax()]
        bound = 4 * mcse(worse) + INTERPOLATION
        yield Effect(f"{regime}, {index}", float(worse.mean()), bound=float(bound), replicates=0)


def at_largest(chosen: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """The entry of each row of ``judged`` (B, k) at the place of the largest of ``chosen``."""
    return np.take_along_axis(judged, chosen.argmax(1)[:, None], 1)[:, 0]


class Rises:
    """The rises of the error between configurations, which are the same whatever the index.

    Args:
        point: the regime's.
        labels: of the C configurations.
        rises: pseudo-values (B, C, C).
    """

    def __init__(self, point: str, labels: Sequence[str], rises: np.ndarray) -> None:
        self.point, self.labels, self.rises = point, labels, rises
        self._made: dict[tuple[int, int], tuple[Effect, Effect]] = {}

    def along(self, index: np.ndarray) -> Iterator[Effect]:
        """The rise of the error in every pair, from the less to the more diverse configuration.

        Where the order of a pair by the index is not known, it counts as a rise of zero that may be
        off by all that the error changes; where both indices are one number, there is no order.

        Args:
            index: pseudo-values (B, C).
        """
        pairs = np.array(list(combinations(range(len(self.labels)), 2)))
        # Batches last in memory: what is summed lies side by side.
        apart = np.ascontiguousarray((index[:, pairs[:, 1]] - index[:, pairs[:, 0]]).T).T
        some, means = np.abs(apart).max(0) >= 1e-9, apart.mean(0)
        told = np.abs(means) > APART * mcse(apart)
        for (first, second), mean, known in zip(
            pairs[some].tolist(), means[some], told[some], strict=True
        ):
            rise, unknown = self.of_pair(*((first, second) if mean > 0 else (second, first)))
            yield rise if known else unknown

    def of_pair(self, low: int, high: int) -> tuple[Effect, Effect]:
        """The rise from one configuration to another, and what it is if their order is unknown."""
        if (low, high) not in self._made:
            label = f"{self.labels[low]} to {self.labels[high]}"
            rise = of_batches(label, self.rises[:, low, high], self.point)
            # More batches bring the order out.
            unknown = replace(rise, value=0.0, bound=abs(rise.value), narrowing=True)
            self._made[low, high] = rise, unknown
        return self._made[low, high]


def majorizes(less: np.ndarray, more: np.ndarray) -> bool:
    """Whether the squared cosines of one Gram matrix weakly majorize those of another, unequal one.

    The sums of the k largest are at least as large, for every k.
    """
    pairs = np.triu_indices(len(less), 1)
    sums = [np.cumsum(np.sort(gram[pairs])[::-1]) for gram in (less, more)]
    return bool((sums[0] >= sums[1] - 1e-9).all() and np.abs(sums[0] - sums[1]).max() > 1e-9)


def varying(
    point: str,
    labels: Sequence[str],
    values: np.ndarray,
    law: np.ndarray | None = None,
    share: np.ndarray | None = None,
) -> list[Effect]:
    """One effect a configuration, less the law if there is one.

    Aligned heads are one head: what is 0 or 1 for them in every batch is left out.

    Args:
        point: the regime's.
        labels: of the configurations.
        values: pseudo-values (B, C).
        law: those of theory's sets of draws, (S, C); four of its standard errors are a bound.
        share: of variance in the error by theory, (C,), a fact that a claim may select by.
    """
    law = np.zeros((2, len(labels))) if law is None else law
    bounds = 4 * mcse(law)
    facts = [{}] * len(labels) if share is None else [{"variance_share": s} for s in share.tolist()]
    return [
        of_batches(f"{point}, {label}", each - known.mean(), point, bound=float(bound), at=at)
        for label, each, known, bound, at in zip(
            labels, values.T, law.T, bounds, facts, strict=True
        )
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
