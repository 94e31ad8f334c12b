"""Report of a model: every layer's numbers in one labelled dataset, and a summary sentence."""

import math
import zipfile
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtri

from sims.base.errors import InputError, one_of
from sims.base.files import regular_archive
from sims.inspect.families import FAMILIES
from sims.inspect.gaussian import covariance_root, on_gaussian_tokens
from sims.inspect.geometry import (
    DISTANCES,
    Arrays,
    geometry,
    mean_of_pairs,
    median_rank,
    zero_maps,
)
from sims.inspect.layouts import Layer, layers
from sims.inspect.measured import QUANTILES, measured, moments_of, sequences_of
from sims.inspect.patterns import Rule, rule_of
from sims.inspect.reader import Model
from sims.problem.diversity import DEFINITIONS

TOLERANCE = 0.01
"""Output error, as a share of variance, up to which removed heads count as redundant."""
FILE = "heads of a model"
"""Identity in the seal of a report's file."""
LEVEL = 0.05
"""Probability, within a layer, that some pair of random subspaces counts as above the baseline."""
MASK = "attention_mask"
"""Name of the array that is 0 at padding."""
HEAD_DIMS = ("head", "head2", "key_head", "key_head2")
CROSS = ("cross", "encoder_attn", "EncDecAttention")
"""Pattern in the names of modules whose keys and queries come from different tokens."""


def inspect(
    model: str | Path,
    config: str | Path | None = None,
    activations: str | Path | Mapping[str, np.ndarray] | None = None,
    heads: int | None = None,
    attention: str | None = None,
    tolerance: float = TOLERANCE,
) -> xr.Dataset:
    """Report of a model along ``layer``; a layer that is applied several times has several rows.

    Args:
        model: a ``.safetensors`` file, its ``.index.json``, or a folder with either.
        config: config.json; by default the one next to the model, if there is one.
        activations: npz file or arrays, from the name of an attention module or the number of a
            layer to its inputs (sequence, token, d) or their covariance matrix (d, d) about 0;
            ``attention_mask`` (sequence, token) is 0 at padding.
        heads: H, if no config gives it.
        attention: ``causal`` or ``full``, if no config gives it.
        tolerance: output error up to which heads count as redundant, a share of variance.

    Raises:
        InputError: the model or the activations cannot be read as documented.
    """
    if not 0 < tolerance < 1:
        raise InputError("--tolerance", tolerance, "a share above 0 and below 1")
    rows: list[xr.Dataset] = []
    opened = Model(model, config)
    inputs = None if activations is None else Inputs(activations)
    rule = _rule(opened.config, attention, inputs is not None)
    notes = [f"The file is part {opened.part} of its model."] if opened.part else []
    if inputs and rule and rule.base is None and _has_positions(opened.config):
        notes.append("Positions are left out, as --attention asks.")
    for layer in layers(opened, heads):
        number = len(rows) if layer.number is None else layer.number
        notes += _notes(layer, number)
        weights = _labelled(geometry(layer, rule))
        weights = weights.assign(_summary(weights) | {"module": layer.module})
        if inputs and rule:
            rows += _rows_of_passes(weights, layer, number, inputs, rule, tolerance)
        else:
            rows.append(weights.assign_coords(layer=number))
    data = xr.concat(
        rows, "layer", data_vars="all", coords="minimal", compat="override", join="outer"
    )
    if inputs:
        inputs.check_used(f"{_listed(data.layer.values).lower()} of {opened.name}, or its modules")
    data.attrs = {"model": opened.name, "tolerance": tolerance, "notes": "\n".join(notes)}
    data.attrs["sentence"] = sentence(data)
    return data


def _has_positions(config: Mapping[str, Any]) -> bool:
    family = FAMILIES.get(str(config.get("model_type")))
    return family is not None and bool(family.partial or family.rotated)


def _rows_of_passes(
    weights: xr.Dataset, layer: Layer, number: int, inputs: "Inputs", rule: Rule, tolerance: float
) -> list[xr.Dataset]:
    """Rows for every use of a layer, from its weights and its inputs there."""
    rows = []
    for time in range(layer.passes):
        row = weights.assign_coords(layer=number + time)
        module = layer.module if layer.passes == 1 else f"{layer.module}#{time}"
        name = inputs.name(module, number + time)
        if name is not None:
            readings = _labelled(_on_inputs(layer, inputs, name, rule, tolerance))
            row = row.merge(readings.assign(_input_summary(readings, tolerance)))
        rows.append(row)
    return rows


def _rule(config: Mapping[str, Any], attention: str | None, needed: bool) -> Rule | None:
    """Rule of a config; None if it is unknown and not needed."""
    try:
        return rule_of(config, attention)
    except InputError:
        if needed:
            raise
        return None


def _notes(layer: Layer, number: int) -> list[str]:
    """Notes for the reader of a layer's numbers, one line each."""
    notes = []
    if layer.number is None and layer.passes == 1:
        notes.append(f"Layer {number} is {layer.module}.")
    for kind, heads in zero_maps(layer).items():
        if heads:
            listed = ", ".join(map(str, heads))
            notes.append(f"Layer {number}: the {kind} map is 0 in head {listed}, left out.")
    return notes


def _on_inputs(layer: Layer, inputs: "Inputs", name: str, rule: Rule, tolerance: float) -> Arrays:
    if any(word in layer.module for word in CROSS):
        raise InputError(name, "cross-attention", "self-attention, whose inputs are the tokens")
    if layer.left:
        raise InputError(layer.left[0], "attention sinks", "layers without, or no activations")
    values = inputs.read(name)
    d = layer.matrices.key.shape[1]
    if values.ndim == 2:
        return on_gaussian_tokens(layer, np.zeros(d), covariance_root(name, values, d), rule)
    mask = inputs.read(MASK) if MASK in inputs.arrays else None
    sequences = sequences_of(name, values, mask, layer)
    readings = measured(layer, sequences, rule, tolerance)
    mean, covariance = moments_of(sequences)
    predicted = on_gaussian_tokens(layer, mean, covariance_root(name, covariance, d), rule)
    return {**predicted, **readings, "sequences": ((), np.array(len(sequences)))}


class Inputs:
    """Inputs of attention modules, by name, read from an npz file on demand."""

    def __init__(self, source: str | Path | Mapping[str, np.ndarray]) -> None:
        """Open the file of inputs.

        Raises:
            InputError: the file is no npz.
        """
        self.source = "activations"
        self.arrays: Mapping[str, np.ndarray]
        self._used = {MASK}
        if isinstance(source, Mapping):
            self.arrays = source
            return
        self.source = str(regular_archive(str(source), source))
        try:
            opened = np.load(source, allow_pickle=False)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(self.source, str(error)[:60], "an npz file") from None
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise InputError(self.source, "one array", "an npz file: layer name to inputs")
        self.arrays = opened

    def name(self, module: str, number: int) -> str | None:
        """Name of a layer's array: its number, or its module's name."""
        for name in (str(number), module):
            if name in self.arrays:
                self._used.add(name)
                return name
        return None

    def read(self, name: str) -> np.ndarray:
        """Array with the given name.

        Raises:
            InputError: the array is damaged, or contains objects.
        """
        try:
            return np.asarray(self.arrays[name])
        except (ValueError, EOFError, OSError, zipfile.BadZipFile, zipfile.error) as error:
            raise InputError(f"{self.source}: {name}", str(error)[:60], "an array") from None

    def check_used(self, known: str) -> None:
        """Raise InputError if an array belongs to no known layer."""
        for name in self.arrays:
            if name not in self._used:
                raise InputError(f"{self.source}: {name}", "of no layer", known)


def _labelled(arrays: Any) -> xr.Dataset:
    data = xr.Dataset(arrays)
    named = {"definition": DEFINITIONS, "quantile": QUANTILES, "distance": DISTANCES}
    coordinates = {dim: list(named.get(str(dim), range(n))) for dim, n in data.sizes.items()}
    return data.assign_coords(coordinates)


def _summary(weights: xr.Dataset) -> dict[str, float]:
    """Numbers of a layer, summarised from its arrays; indices are ``1 − mean correlation``."""
    kernel = weights.projection_kernel.values
    upper = kernel[np.triu_indices(len(kernel), 1)]
    upper = upper[np.isfinite(upper)]
    limit = -ndtri(LEVEL / max(len(upper), 1)) * float(weights.overlap_baseline_sd)
    numbers: dict[str, float] = {
        "heads": weights.sizes["head"],
        "key_heads": weights.sizes["key_head"],
        "pairs_above_baseline": int((upper - float(weights.overlap_baseline) > limit).sum()),
    }
    for name in ("index_key_heads", "index_query_heads"):
        for label in (name, f"{name}_baseline"):
            numbers[f"{label}_mean"] = float(weights[label].sel(definition="mean"))
    for name in ("qk_effective_rank", "ov_effective_rank"):
        numbers[f"{name}_median"] = float(median_rank(weights[name].values))
    numbers["score_correlation_mean"] = float(mean_of_pairs(weights.score_correlation.values))
    if "distance" in weights.dims:
        ranks = median_rank(weights.qk_effective_rank_by_distance.values)
        means = mean_of_pairs(weights.score_correlation_by_distance.values)
        for name, values in (("qk_effective_rank", ranks), ("score_correlation", means)):
            numbers |= {f"{name}_least": values.min(), f"{name}_most": values.max()}
    return {name: float(value) for name, value in numbers.items()}


def _input_summary(readings: xr.Dataset, tolerance: float) -> dict[str, float]:
    """Numbers of a layer from its inputs: indices, and ranks within the tolerance."""
    numbers = {}
    for part, end in product(("noise", "contribution"), ("", "_mcse")):
        if f"{part}_index" in readings:
            mean = readings[f"{part}_index{end}"].sel(definition="mean")
            numbers[f"{part}_index_mean{end}"] = float(mean)
    for name in ("kq_svd", "k_svd"):
        if f"{name}_error" in readings:
            above = readings[f"{name}_error"] > tolerance
            numbers[f"{name}_rank"] = float(above.sum("rank_kept").median())
    if "predicted_noise_correlation" in readings:
        predicted = mean_of_pairs(readings.predicted_noise_correlation.values)
        numbers["predicted_noise_correlation_mean"] = float(predicted)
    return numbers


def sentence(data: xr.Dataset) -> str:
    """Summary of the report: redundant heads by layer, and overlaps against the baseline."""
    above = [int(k) for k in data.layer[data.pairs_above_baseline.values > 0]]
    compared = data.overlap_excess.notnull().values
    if "redundant_heads" not in data:
        return _sentence_of_overlaps(above, int(compared.sum()))
    counts = data.redundant_heads.values
    parts = _count_redundant(data)
    parts[0] += f" at {100 * data.attrs['tolerance']:.3g} % output error"
    not_redundant = data.layer.values[compared & (counts == 0)].tolist()
    beyond = [layer for layer in not_redundant if layer in above]
    if beyond:
        parts.append(f"key subspaces of {_listed(beyond).lower()} overlap more than random ones")
    if len(beyond) < len(not_redundant):
        parts.append("the rest is within the baseline")
    unseen = data.layer.values[np.isnan(counts)].tolist()
    if unseen:
        parts.append(f"{_listed(unseen).lower()} without activations")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _sentence_of_overlaps(above: list[int], compared: int) -> str:
    """Clause on layers with overlaps above the baseline, among those with comparable heads."""
    if not compared:
        return "No two key subspaces to compare."
    if not above:
        return "No key subspaces overlap more than random ones."
    end = "; the rest is within the baseline" * (len(above) < compared)
    return f"{_listed(above)}: key subspaces overlap more than random ones{end}."


def _count_redundant(data: xr.Dataset) -> list[str]:
    """Clauses on layers by their number of redundant heads, from the most."""
    layers_by_count: dict[tuple[int, int], list[int]] = {}
    columns = (data.layer.values, data.redundant_heads.values, data.heads.values)
    for layer, count, total in zip(*columns, strict=True):
        if count > 0:
            layers_by_count.setdefault((int(count), int(total)), []).append(layer)
    clauses = []
    for (count, total), rows in sorted(layers_by_count.items(), reverse=True):
        verb = "is" if count == 1 else "are"
        clauses.append(f"{_listed(rows).lower()}: {count} of {total} heads {verb} redundant")
    return clauses or ["no head is redundant"]


def _listed(numbers: list[int]) -> str:
    """``Layer 3``, ``Layers 3 and 7``, ``Layers 0–5``: numbers in words."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words: list[str] = []
    for run in runs:
        words += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run)
    joined = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    return f"Layer{'s' * (len(numbers) > 1)} {joined}"


def scalars(data: xr.Dataset) -> dict[str, np.ndarray]:
    """Scalar numbers per layer, by name."""
    numbers = {str(k): v for k, v in data.data_vars.items() if v.dims == ("layer",)}
    return {k: v.values.astype(float) for k, v in numbers.items() if v.dtype.kind in "iufb"}


def exceeded(data: xr.Dataset, limits: Mapping[str, float]) -> list[str]:
    """Lines on layers that exceed a limit.

    Raises:
        InputError: the report has no number of a limit's name.
    """
    numbers = scalars(data)
    lines = []
    for name, limit in limits.items():
        if name not in numbers:
            raise InputError("--fail-above", name, one_of(numbers, name))
        for layer, value in zip(data.layer.values, numbers[name], strict=True):
            if value > limit:
                lines.append(f"layer {layer}: {name} {value:.4g} is above {limit:g}")
    return lines


def as_json(data: xr.Dataset) -> dict[str, Any]:
    """Report as an object for JSON, without angles, and with NaN as null."""
    rows = []
    for layer in data.layer.values:
        row = data.sel(layer=layer).drop_vars(["principal_angle", "layer"])
        sizes = {dim: int(row[f"{dim.rstrip('2')}s"]) for dim in HEAD_DIMS}
        plain = {"layer": int(layer)}
        for name, values in row.data_vars.items():
            plain[str(name)] = _plain(values, sizes)
        rows.append(plain)
    return {**data.attrs, "layers": rows}


def _plain(values: xr.DataArray, sizes: Mapping[str, int]) -> Any:
    """Values without padding for layers with fewer heads or dimensions than others."""
    for dim in map(str, values.dims):
        if dim in sizes:
            values = values.isel({dim: slice(sizes[dim])})
        elif values.dtype.kind == "f":
            values = values.dropna(dim, how="all")
    return _finite(values.values.tolist())


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def stack(reports: Mapping[Any, xr.Dataset], name: str = "step") -> xr.Dataset:
    """Reports of several checkpoints of one model in one dataset, along ``step``.

    Raises:
        InputError: the reports have different layers.
    """
    if len({tuple(data.layer.values) for data in reports.values()}) > 1:
        raise InputError(name, "models of different layers", "checkpoints of one model")
    plain = [data.drop_attrs(deep=False) for data in reports.values()]
    data = xr.concat(plain, name, data_vars="all", coords="minimal", join="outer")
    return data.assign_coords({name: list(reports)})
