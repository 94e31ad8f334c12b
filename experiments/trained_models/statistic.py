"""Rank correlations of predictors with a cost, and trained heads compared with the law."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from sims.base.estimates import Batches, jackknife
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import of_batches
from sims.judgement.wording import markdown_table, percent, significant
from sims.study.results import Results

from .problems import TOKENS

COSTS = ("merging", "pruning", "predictions")
"""Merging two heads and pruning one, in the layer's output, and pruning in the predictions."""
INDICES = ("subspaces", "patterns")
SIZES = ("outputs", "matrices")
PREDICTORS = (*INDICES, *SIZES)
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
    overlap = {
        "subspaces": means["subspaces"],
        "patterns": noise_correlation(noise),
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
    means = {**means, "patterns": means["patterns"][..., 0, :, :, :]}
    merging = means["merging"]
    first, second = np.triu_indices(merging.shape[-1], 1)
    # of the two heads the one whose part the other takes at less cost
    pairs = np.minimum(merging, merging.swapaxes(-1, -2))[..., first, second]
    costs = {**means, "merging": pairs}
    columns = []
    for name in COSTS:
        known = predictors(means, name == "merging")
        sizes = [known[size] for size in SIZES]
        columns += [rank_correlation(known[each], costs[name]) for each in PREDICTORS]
        columns += [rank_correlation(known[each], costs[name], *sizes) for each in INDICES]
    return np.stack(columns, axis=-1)


def mean_of_pairs(matrix: np.ndarray) -> np.ndarray:
    """Mean over the entries off the diagonal of matrices (…, H, H)."""
    others = ~np.eye(matrix.shape[-1], dtype=bool)
    return np.asarray(matrix[..., others].mean(-1))


def noise_correlation(patterns: np.ndarray) -> np.ndarray:
    """``⟨w_h, w_g⟩/(|w_h||w_g|)`` of matrices ``E Σ_i w_hi w_gi`` (…, H, H)."""
    size = np.sqrt(np.diagonal(patterns, axis1=-2, axis2=-1))
    return np.asarray(patterns / size[..., None] / size[..., None, :])


def variance_kept(patterns: np.ndarray) -> np.ndarray:
    """Noise variance of the plain average over the mean head's, of matrices (…, H, H)."""
    return np.asarray(patterns.mean((-2, -1)) / np.diagonal(patterns, axis1=-2, axis2=-1).mean(-1))


def correlation_by_angles(
    cosines: np.ndarray, patterns: np.ndarray, keys: np.ndarray
) -> np.ndarray:
    """The angle law's noise correlation of softmax heads on isotropic keys, (…, H, H).

    ``Π_j ρ(c_j)/ρ(1)`` with ``ρ(c) = [1 − 2ac² − a²c²(1 − c²)]^{−1/2}`` (theory.md, "The angle
    law"). a is such that a head has its measured ``n E Σ w² = ρ(1)^{d_k}``, mean over heads.

    Args:
        cosines: of the principal angles of key subspaces, (…, H, H, d_k).
        patterns: ``E Σ_i w_hi w_gi``, (…, H, H).
        keys: their number n, of the shape of what is before (H, H).
    """
    noise = keys * np.diagonal(patterns, axis1=-2, axis2=-1).mean(-1)
    a = (1 - noise ** (-2 / cosines.shape[-1])) / 2
    a = a[..., None, None, None]
    square = cosines**2
    curve = (1 - 2 * a * square - a**2 * square * (1 - square)) ** -0.5
    return np.asarray((curve * np.sqrt(1 - 2 * a)).prod(-1))


def comparisons(means: Batches) -> np.ndarray:
    """Beside heads of the law, and beside the angle law, (…, layer, 2 · tokens).

    For each choice of tokens the variance kept less that of heads of the law, and the relative gap
    of one less the noise correlation from the angle law's.
    """
    patterns = means["patterns"]
    by_angles = correlation_by_angles(
        means["cosines"][..., None, :, :, :, :], patterns, means["keys"][..., None]
    )
    kept = variance_kept(patterns) - variance_kept(means["law_patterns"])
    apart = 1 - mean_of_pairs(noise_correlation(patterns))
    gaps = apart / (1 - mean_of_pairs(by_angles)) - 1
    both = np.stack([kept, gaps], axis=-1).swapaxes(-3, -2)
    return both.reshape(*both.shape[:-2], -1)


def statistics(means: Batches) -> np.ndarray:
    """The K statistics of :func:`labels`, (…, layer, K)."""
    return np.concatenate([correlations(means), comparisons(means)], axis=-1)


def by_pass(results: Results) -> dict[str, np.ndarray]:
    """Draws (batch, layer, K) of the statistics by model, whose mean is that of all data.

    Their spread is that of the jackknife, which corrects no bias here: ranks are not smooth.
    """
    draws = {}
    for model, data in results.estimates.items():
        weights = results.predictions[model]
        values = {}
        for name, each in data.data_vars.items():
            if "batch" in each.dims:
                values[str(name)] = each.values
        for name in ("cosines", "subspaces", "matrices"):
            values[name] = np.stack([weights[name].values] * data.sizes["batch"])
        pseudo = jackknife(values, statistics)
        estimate = statistics({name: each.mean(0) for name, each in values.items()})
        draws[model] = pseudo + estimate - pseudo.mean(0)
    return draws


def labels() -> dict[str, str]:
    """Names of the K statistics, each with its kind of effect."""
    kinds: dict[str, str] = {}
    for cost in COSTS:
        for name in PREDICTORS:
            kinds[f"{cost}, {name}"] = "share"
        for name in INDICES:
            kinds[f"{cost}, {name}{GIVEN}"] = "estimate"
    for tokens in TOKENS:
        kinds |= {f"kept, {tokens}": "estimate", f"angles, {tokens}": "gap"}
    return kinds


def effects(results: Results) -> Mapping[str, Effects]:
    """Correlations and comparisons of stored layers; one passed several times has its mean."""
    layers = []
    for model, values in by_pass(results).items():
        module = results.predictions[model]["module"].values
        layers += [values[:, module == one].mean(1) for one in dict.fromkeys(module)]
    stored = np.stack(layers)
    made = {}
    for place, (name, kind) in enumerate(labels().items()):
        made[name] = of_batches(stored[..., place], kind=kind)
    return made


def parameters(results: Results) -> pd.DataFrame:
    """The model of each stored layer, and how often it is passed."""
    rows = []
    for model, data in results.predictions.items():
        module = data["module"].values
        rows += [{"model": model, "passes": (module == m).sum()} for m in dict.fromkeys(module)]
    return pd.DataFrame(rows)


def beside_the_law(results: Results) -> pd.DataFrame:
    """What attention maps say, a row per model, pass and choice of tokens, beside heads of the law.

    ``gap`` is the relative gap of one less the noise correlation from the angle law's.
    """
    names = list(labels())
    draws = by_pass(results)
    rows = []
    for model, data in results.estimates.items():
        means = data.mean("batch")
        trained, of_law = (means[name].values for name in ("patterns", "law_patterns"))
        index = 1 - mean_of_pairs(results.predictions[model]["subspaces"].values)
        columns = {
            "selectivity": means["selectivity"].mean("head").values,
            "index": np.tile(index, (len(TOKENS), 1)),
            "correlation": mean_of_pairs(noise_correlation(trained)),
            "law_correlation": mean_of_pairs(noise_correlation(of_law)),
            "kept": variance_kept(trained),
            "law_kept": variance_kept(of_law),
        }
        for kind, tokens in enumerate(TOKENS):
            frame = pd.DataFrame({name: values[kind] for name, values in columns.items()})
            frame["gap"] = draws[model].mean(0)[:, names.index(f"angles, {tokens}")]
            rows.append(frame.assign(model=model, layer=range(1, len(frame) + 1), tokens=tokens))
    return pd.concat(rows, ignore_index=True)


def law_table(results: Results) -> str:
    """:func:`beside_the_law` as a Markdown table, a row per pass: all tokens / without special."""
    frame = beside_the_law(results)
    first, second = (frame[frame["tokens"] == tokens] for tokens in TOKENS)
    titles = {
        "selectivity": "n_eff/n",
        "correlation": "noise correlation",
        "law_correlation": "noise correlation, law",
        "kept": "variance kept",
        "law_kept": "variance kept, law",
        "gap": "1 − ρ against the angle law",
    }
    lines = []
    for (_, one), (_, other) in zip(first.iterrows(), second.iterrows(), strict=True):
        line = {"model": one["model"], "layer": str(one["layer"])}
        line["index"] = significant(one["index"])
        for name, title in titles.items():
            show = percent if name == "gap" else significant
            line[title] = f"{show(one[name], 2)} / {show(other[name], 2)}"
        lines.append(line)
    return markdown_table(lines)
