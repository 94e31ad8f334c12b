"""Rank correlations, layer by layer, of what may predict a cost with the cost itself."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from sims.base.estimates import Batches, jackknife
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import of_batches
from sims.study.results import Results

COSTS = ("merging", "unexplained", "pruning", "predictions")
"""Merging two heads, over the variance of the layer's output and of the head's own; pruning one, in
that output, and in the model's predictions."""
INDICES = ("subspaces", "patterns")
SIZES = ("outputs", "matrices")
PREDICTORS = (*INDICES, *SIZES, "random")
GIVEN = " given sizes"


def ranked(values: np.ndarray) -> np.ndarray:
    """Ranks along the last axis, less their mean."""
    return np.asarray(rankdata(values, axis=-1) - (values.shape[-1] + 1) / 2)


def rank_correlation(predictor: np.ndarray, cost: np.ndarray, *given: np.ndarray) -> np.ndarray:
    """Spearman's correlation along the last axis; partial, where other predictors are given."""
    pair = np.stack([ranked(predictor), ranked(cost)], axis=-1)
    if given:
        basis = np.linalg.qr(np.stack([ranked(each) for each in given], axis=-1)).Q
        pair -= basis @ (basis.swapaxes(-1, -2) @ pair)
    product = pair.swapaxes(-1, -2) @ pair
    return np.asarray(product[..., 0, 1] / np.sqrt(product[..., 0, 0] * product[..., 1, 1]))


def predictors(means: Batches, pairs: bool) -> dict[str, np.ndarray]:
    """What may predict a cost, high where it is to be high, (…, layer, pair or head).

    An index of two heads is 1 − their overlap, that of a head its mean over the others; the size of
    two heads is the smaller one, which merging them removes.
    """
    noise = means["patterns"]
    spread = np.sqrt(np.diagonal(noise, axis1=-2, axis2=-1))
    overlap = {
        "subspaces": means["subspaces"],
        "patterns": noise / spread[..., None] / spread[..., None, :],
        "random": means["random"],
    }
    size = {"outputs": means["outputs"], "matrices": means["matrices"]}
    if pairs:
        first, second = np.triu_indices(noise.shape[-1], 1)
        indices = {name: 1 - each[..., first, second] for name, each in overlap.items()}
        sizes = {n: np.minimum(each[..., first], each[..., second]) for n, each in size.items()}
        return indices | sizes
    others = 1 - np.eye(noise.shape[-1])
    return {name: -(each * others).mean(-1) for name, each in overlap.items()} | size


def correlations(means: Batches) -> np.ndarray:
    """Of each cost in turn: every predictor's, and each index's given the sizes, (…, layer, K)."""
    merging = means["merging"]
    first, second = np.triu_indices(merging.shape[-1], 1)
    pairs = {"merging": merging, "unexplained": merging / means["pruning"][..., None]}
    costs = {name: means[name] for name in COSTS if name not in pairs}
    for name, each in pairs.items():
        # of the two heads the one whose part the other takes at less cost
        costs[name] = np.minimum(each, each.swapaxes(-1, -2))[..., first, second]
    columns = []
    for name in COSTS:
        known = predictors(means, name in pairs)
        sizes = [known[size] for size in SIZES]
        columns += [rank_correlation(known[each], costs[name]) for each in PREDICTORS]
        columns += [rank_correlation(known[each], costs[name], *sizes) for each in INDICES]
    return np.stack(columns, axis=-1)


def by_pass(results: Results) -> dict[str, np.ndarray]:
    """Draws (batch, layer, K) of :func:`correlations` by model, whose mean is that of all data.

    Their spread is that of the jackknife, which corrects no bias here: ranks are not smooth.
    """
    draws = {}
    for model, data in results.estimates.items():
        weights, batches = results.predictions[model], data.sizes["batch"]
        values = {k: data[k].values for k in ("patterns", "outputs", "merging", *COSTS[2:])}
        for name in ("subspaces", "matrices", "random"):
            values[name] = np.stack([weights[name].values] * batches)
        pseudo = jackknife(values, correlations)
        estimate = correlations({name: each.mean(0) for name, each in values.items()})
        draws[model] = pseudo + estimate - pseudo.mean(0)
    return draws


def labels() -> list[str]:
    """Names of the K correlations."""
    names = [*PREDICTORS, *(f"{name}{GIVEN}" for name in INDICES)]
    return [f"{cost}, {name}" for cost in COSTS for name in names]


def effects(results: Results) -> Mapping[str, Effects]:
    """Correlations of stored layers; a layer that is passed several times counts by its mean."""
    columns = []
    for model, values in by_pass(results).items():
        module = results.predictions[model]["module"].values
        columns += [values[:, module == one].mean(1) for one in dict.fromkeys(module)]
    stored = np.stack(columns)
    return {
        name: of_batches(stored[..., k], kind="estimate" if GIVEN in name else "share")
        for k, name in enumerate(labels())
    }


def parameters(results: Results) -> pd.DataFrame:
    """The model of each stored layer, and how often it is passed."""
    rows = []
    for model, data in results.predictions.items():
        module = data["module"].values
        rows += [{"model": model, "passes": (module == m).sum()} for m in dict.fromkeys(module)]
    return pd.DataFrame(rows)
