"""Rank correlations of predictors with a cost, and trained heads compared with the law."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import rankdata

from sims.base.estimates import Batches, jackknife
from sims.judgement.effects import Effects, Kind, share
from sims.judgement.wording import markdown_table, percent, significant
from sims.study.results import Results

from .problems import TOKENS

INDICES = ("subspaces", "patterns")
SIZES = ("outputs", "matrices")
GIVEN = " given sizes"


def ranked(values: np.ndarray) -> np.ndarray:
    """Ranks along the last axis, less their mean."""
    return rankdata(values, axis=-1) - (values.shape[-1] + 1) / 2


def rank_correlation(predictor: np.ndarray, cost: np.ndarray, *given: np.ndarray) -> np.ndarray:
    """Spearman's correlation along the last axis; partial, where other predictors are given."""
    pair = np.stack([ranked(predictor), ranked(cost)], axis=-1)
    if given:
        basis = np.linalg.qr(np.stack([ranked(each) for each in given], axis=-1)).Q
        pair -= basis @ (basis.swapaxes(-1, -2) @ pair)
    product = pair.swapaxes(-1, -2) @ pair
    return product[..., 0, 1] / np.sqrt(product[..., 0, 0] * product[..., 1, 1])


def correlations(means: Batches) -> dict[str, np.ndarray]:
    """Rank correlation of every predictor with every cost, and of indices given sizes, (…, layer).

    Costs are those of ``merging`` two heads and of ``pruning`` one, in the layer's output, and of
    pruning in the ``predictions``. Of two heads the one counts whose part the other takes at less
    cost. An index of two heads is 1 − their overlap, that of a head its mean over the others; the
    size of two heads is the smaller one, which merging them removes.
    """
    patterns = noise_correlation(means["patterns"][..., 0, :, :, :])
    others = 1 - np.eye(patterns.shape[-1])
    first, second = np.triu_indices(patterns.shape[-1], 1)
    of_pairs, of_heads = {}, {}
    for name, overlap in zip(INDICES, (means["subspaces"], patterns), strict=True):
        of_pairs[name] = 1 - overlap[..., first, second]
        of_heads[name] = -(overlap * others).mean(-1)
    for name in SIZES:
        of_heads[name] = means[name]
        of_pairs[name] = np.minimum(means[name][..., first], means[name][..., second])
    merging = np.minimum(means["merging"], means["merging"].swapaxes(-1, -2))
    costs = {
        "merging": (merging[..., first, second], of_pairs),
        "pruning": (means["pruning"], of_heads),
        "predictions": (means["predictions"], of_heads),
    }
    found = {}
    for title, (cost, known) in costs.items():
        sizes = [known[name] for name in SIZES]
        for name, values in known.items():
            found[f"{title}, {name}"] = rank_correlation(values, cost)
        for name in INDICES:
            found[f"{title}, {name}{GIVEN}"] = rank_correlation(known[name], cost, *sizes)
    return found


def likeness(means: Batches) -> dict[str, np.ndarray]:
    """How well each predictor gives the correlation of what two heads write, (…, layer).

    Rank correlations over pairs, ``alike``, and roots of mean squared differences, ``off``; of the
    overlap of key subspaces, the noise correlation of patterns, the alignment of value and output
    maps, its product with the patterns, and zero.
    """
    written = noise_correlation(means["written"])
    patterns = noise_correlation(means["patterns"][..., 0, :, :, :])
    guesses = {
        "subspaces": means["subspaces"],
        "patterns": patterns,
        "alignment": means["alignment"],
        "product": means["alignment"] * patterns,
    }
    first, second = np.triu_indices(written.shape[-1], 1)
    truth = written[..., first, second]
    found = {"off, zero": np.sqrt((truth**2).mean(-1))}
    for name, guess in guesses.items():
        told = guess[..., first, second]
        found[f"alike, {name}"] = rank_correlation(told, truth)
        found[f"off, {name}"] = np.sqrt(((told - truth) ** 2).mean(-1))
    return found


def mean_of_pairs(matrix: np.ndarray) -> np.ndarray:
    """Mean over the entries off the diagonal of matrices (…, H, H)."""
    others = ~np.eye(matrix.shape[-1], dtype=bool)
    return matrix[..., others].mean(-1)


def noise_correlation(patterns: np.ndarray) -> np.ndarray:
    """``⟨w_h, w_g⟩/(|w_h||w_g|)`` of matrices ``E Σ_i w_hi w_gi`` (…, H, H)."""
    size = np.sqrt(np.diagonal(patterns, axis1=-2, axis2=-1))
    return patterns / size[..., None] / size[..., None, :]


def variance_kept(patterns: np.ndarray) -> np.ndarray:
    """Noise variance of the plain average over the mean head's, of matrices (…, H, H)."""
    return patterns.mean((-2, -1)) / np.diagonal(patterns, axis1=-2, axis2=-1).mean(-1)


def correlation_by_angles(
    cosines: np.ndarray, patterns: np.ndarray, keys: np.ndarray
) -> np.ndarray:
    """The angle law's noise correlation of softmax heads on isotropic keys, (…, H, H).

    ``Π_j ρ(c_j)/ρ(1)`` with ``ρ(c) = [1 − 2ac² − a²c²(1 − c²)]^{−1/2}`` (theory/angles.md).
    a is such that a head has its measured ``n E Σ w² = ρ(1)^{d_k}``, mean over heads.

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
    return (curve * np.sqrt(1 - 2 * a)).prod(-1)


def comparisons(means: Batches) -> dict[str, np.ndarray]:
    """Noise of trained heads and of heads of the law, each (…, tokens, layer).

    ``correlation`` of two heads, and the share of variance ``kept`` by their average; the same of
    what they write, ``written`` and ``written_kept``, whatever the tokens; ``gap`` is the relative
    gap of one less the noise correlation from the angle law's.
    """
    patterns, law_patterns, written = (
        means[name] for name in ("patterns", "law_patterns", "written")
    )
    cosines = means["cosines"][..., None, :, :, :, :]
    by_angles = correlation_by_angles(cosines, patterns, means["keys"][..., None])
    correlation = mean_of_pairs(noise_correlation(patterns))
    return {
        "correlation": correlation,
        "law_correlation": mean_of_pairs(noise_correlation(law_patterns)),
        "kept": variance_kept(patterns),
        "law_kept": variance_kept(law_patterns),
        "written": mean_of_pairs(noise_correlation(written))[..., None, :],
        "written_kept": variance_kept(written)[..., None, :],
        "gap": (1 - correlation) / (1 - mean_of_pairs(by_angles)) - 1,
    }


def statistics(means: Batches) -> dict[str, np.ndarray]:
    """Every statistic by its name, (…, layer).

    For each choice of tokens ``kept`` is the variance kept less that of heads of the law, and
    ``angles`` the gap from the angle law; ``kept less, outputs`` is what patterns keep beyond what
    outputs do.
    """
    found = correlations(means) | likeness(means)
    compared = comparisons(means)
    found["kept less, outputs"] = (compared["kept"] - compared["written_kept"])[..., 0, :]
    for place, tokens in enumerate(TOKENS):
        found[f"kept, {tokens}"] = (compared["kept"] - compared["law_kept"])[..., place, :]
        found[f"angles, {tokens}"] = compared["gap"][..., place, :]
    return found


def kind_of(name: str) -> Kind:
    """The kind of effect that a statistic is."""
    if name.startswith("angles"):
        return "gap"
    return "mean" if name.startswith(("kept", "off")) or name.endswith(GIVEN) else "share"


def effects(results: Results) -> Mapping[str, Effects]:
    """Correlations and comparisons of stored layers; one passed several times has its mean.

    The mean of the draws is the statistic of all data; their spread is that of the jackknife, which
    corrects no bias here: ranks are not smooth.
    """

    def stack_statistics(means: Batches) -> np.ndarray:
        return np.stack([*statistics(means).values()], axis=-1)

    stored = []
    for model, data in results.estimates.items():
        weights = results.predictions[model]
        batches = {str(k): each.values for k, each in data.items() if "batch" in each.dims}
        for name in ("cosines", "subspaces", "matrices", "alignment"):
            batches[name] = np.stack([weights[name].values] * data.sizes["batch"])
        pseudo = jackknife(batches, stack_statistics)
        means = {name: each.mean(0) for name, each in batches.items()}
        draws = pseudo + stack_statistics(means) - pseudo.mean(0)
        module = weights["module"].values
        stored += [draws[:, module == one].mean(1) for one in dict.fromkeys(module)]
    joined = np.stack(stored)
    made = {}
    for place, name in enumerate(statistics(means)):
        made[name] = replace(share(joined[..., place]), kind=kind_of(name))
    return made


def parameters(results: Results) -> pd.DataFrame:
    """The model of each stored layer, and how often it is passed."""
    rows = []
    for model, data in results.predictions.items():
        passes = Counter(data["module"].values.tolist())
        rows += [{"model": model, "passes": count} for count in passes.values()]
    return pd.DataFrame(rows)


def beside_the_law(results: Results) -> pd.DataFrame:
    """:func:`comparisons` as a row per model, pass and choice of tokens, with n_eff/n and index."""
    dims = ("tokens", "layer")
    frames = []
    for model, data in results.estimates.items():
        weights = results.predictions[model]
        means = {str(name): each.values for name, each in data.mean("batch").items()}
        found = comparisons(means | {"cosines": weights["cosines"].values})
        found["selectivity"] = means["selectivity"].mean(-1)
        shape = means["selectivity"].shape[:2]
        every = {name: (dims, np.broadcast_to(values, shape)) for name, values in found.items()}
        table = xr.Dataset(every)
        table["index"] = "layer", 1 - mean_of_pairs(weights["subspaces"].values)
        table = table.assign_coords(tokens=[*TOKENS], layer=range(1, table.sizes["layer"] + 1))
        frame = table.to_dataframe(dims).reset_index()
        frames.append(frame.assign(model=model, recovered=float(means["recovered"])))
    return pd.concat(frames, ignore_index=True)


def panels(results: Results) -> xr.Dataset:
    """:func:`beside_the_law` by row, and every statistic of stored layers."""
    found = {name: effect.value for name, effect in effects(results).items()}
    rows = beside_the_law(results).rename_axis("row").to_xarray()
    statistics = xr.DataArray([*found.values()], {"statistic": [*found]}, ("statistic", "layers"))
    return rows.assign(correlations=statistics)


def law_table(beside: pd.DataFrame) -> str:
    """:func:`beside_the_law` as a Markdown table, a row per pass: all tokens / without special."""
    titles = {
        "selectivity": "n_eff/n",
        "correlation": "noise correlation",
        "law_correlation": "noise correlation, law",
        "kept": "variance kept",
        "law_kept": "variance kept, law",
        "written": "correlation of outputs",
        "written_kept": "variance kept, outputs",
        "gap": "1 − ρ against the angle law",
    }
    lines = []
    for (model, layer), rows in beside.groupby(["model", "layer"], sort=False):
        index = significant(rows["index"].iloc[0])
        line = {"model": str(model), "layer": str(layer), "index": index}
        for name, title in titles.items():
            show = percent if name == "gap" else significant
            line[title] = " / ".join(show(value, 2) for value in rows[name])
        lines.append(line)
    return markdown_table(lines)
