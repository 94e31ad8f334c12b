"""Report of a model: every layer's numbers in one labelled dataset, and a summary sentence."""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims.base.errors import InputError, one_of
from sims.base.estimates import mcse
from sims.base.files import regular_archive
from sims.inspect.completeness import absent_layers
from sims.inspect.families import FAMILIES, Family
from sims.inspect.gaussian import covariance_root, on_gaussian_tokens
from sims.inspect.geometry import (
    DISTANCES,
    Arrays,
    geometry,
    mean_of_pairs,
    median_rank,
    zero_maps,
)
from sims.inspect.layer import Layer
from sims.inspect.layouts import layers, modules
from sims.inspect.measured import QUANTILES, measured, moments_of, sequences_of
from sims.inspect.patterns import Rule, rule_of
from sims.inspect.profiles import rank_within
from sims.inspect.reader import Model
from sims.inspect.sentences import advice, capitalised, listed, sentence
from sims.problem.diversity import DEFINITIONS

TOLERANCE = 0.01
"""Output error, as a share of variance, up to which removed heads count as redundant."""
FILE = "heads of a model"
"""Identity in the seal of a report's file."""
MASK = "attention_mask"
"""Name of the array that is 0 at padding."""
LOSS = ".loss"
"""Ending of names of rises of the loss, (head, sequence)."""
HEAD_DIMS = ("head", "head2", "key_head", "key_head2")


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
        model: a ``.safetensors`` or ``.gguf`` file, an ``.index.json``, or a folder with one.
        config: config.json; by default the one next to the model, if there is one.
        activations: npz file or arrays, from the name of an attention module or the number of a
            layer to its inputs (sequence, token, d) or their covariance matrix (d, d) about 0;
            ``attention_mask`` (sequence, token) is 0 at padding, and names that end in
            :data:`LOSS` have rises of the loss per token by removed head (head, sequence).
        heads: H, if no config gives it.
        attention: ``causal`` or ``full``, if no config gives it.
        tolerance: output error up to which heads count as redundant, a share of variance.

    Raises:
        InputError: the model or the activations cannot be read as documented.
    """
    if not 0 < tolerance < 1:
        raise InputError("--tolerance", tolerance, "a share above 0 and below 1")
    opened = Model(model, config)
    inputs = None if activations is None else Inputs(activations)
    names = modules(opened)
    notes = _notes(opened, names)
    remarks: dict[str, list[str]] = {}
    rows: list[xr.Dataset] = []
    for layer in layers(opened, heads):
        number = len(rows) if layer.number is None else layer.number
        label = layer.module if layer.number is None and len(names) > 1 else str(number)
        rule, reasons = _rule(opened.config, attention, inputs is not None, layer.number)
        weights = _labelled(geometry(layer, rule or Rule(False)))
        weights = weights.assign(_summary(weights) | {"module": layer.module, "label": label})
        added = _rows(weights, layer, number, inputs, rule, tolerance)
        rows += added
        for remark in reasons + _remarks(layer, opened.config, added):
            remarks.setdefault(remark, []).append(label)
    data = xr.concat(
        rows, "layer", data_vars="all", coords="minimal", compat="override", join="outer"
    )
    if inputs:
        inputs.check_used(f"{listed(data.label.values)} of {opened.name}, or its modules")
    notes += [capitalised(f"{listed(where)}: {remark}.") for remark, where in remarks.items()]
    data.attrs = {"model": opened.name, "tolerance": tolerance, "notes": "\n".join(notes)}
    data.attrs |= {"advice": advice(data), "sentence": sentence(data)}
    return data


def _notes(model: Model, names: Collection[str]) -> list[str]:
    """Sentences on what the file lacks of a model with attention modules of these names."""
    notes = [f"The file is part {model.part} of its model."] if model.part else []
    notes += absent_layers(model.config, names)
    family = str(model.config.get("model_type"))
    if family not in (*FAMILIES, "None"):
        notes.append(f"No forward pass of model_type {family} is checked; names give the layout.")
    return notes


def _rows(
    weights: xr.Dataset,
    layer: Layer,
    number: int,
    inputs: "Inputs | None",
    rule: Rule | None,
    tolerance: float,
) -> list[xr.Dataset]:
    """Rows of a layer: one without inputs, otherwise one for every use and its inputs."""
    if inputs is None or rule is None:
        return [weights.assign_coords(layer=number)]
    rows = []
    for time in range(layer.passes):
        row = weights.assign_coords(layer=number + time)
        module = layer.module
        if layer.passes > 1:
            module += f"#{time}"
            row["label"] = str(number + time)
        name = inputs.name(module, row.label.item())
        if name is not None:
            readings = _labelled(_on_inputs(layer, inputs, name, rule, tolerance))
            row = row.merge(readings.assign(_input_summary(readings, tolerance)))
        rows.append(row)
    return rows


def _rule(
    config: Mapping[str, Any], attention: str | None, needed: bool, layer: int | None
) -> tuple[Rule | None, list[str]]:
    """Rule of a layer and remarks on it; without a rule if it is not needed and not known."""
    family = FAMILIES.get(str(config.get("model_type")))
    try:
        rule = rule_of(config, attention or (None if needed or family else "causal"), layer or 0)
    except InputError as error:
        if needed:
            raise
        return None, [f"score forms leave positions and masks out ({error})"]
    if attention and family and family.rotated and rule.base is None:
        return rule, ["positions are left out, as --attention asks"]
    return rule, []


def _remarks(layer: Layer, config: Mapping[str, Any], rows: Sequence[xr.Dataset]) -> list[str]:
    """Remarks for the reader of a layer's numbers, which are in these rows."""
    remarks = []
    for count in {int(row.get("copies", 0)) for row in rows} - {0}:
        remarks.append(f"{count} sequences are copies of others, left out")
    for kind, heads in zero_maps(layer).items():
        if heads:
            listed = ", ".join(map(str, heads))
            remarks.append(f"the {kind} map is 0 in head {listed}, left out")
    if layer.not_folded:
        remarks.append(f"not folded into the weights: {', '.join(layer.not_folded)}")
    known = FAMILIES.get(str(config.get("model_type")), Family())
    if layer.gain is None and known.norms_first(config):
        remarks.append(f"the gain before attention is not in the file ({' or '.join(known.gain)})")
    return remarks


def _on_inputs(layer: Layer, inputs: "Inputs", name: str, rule: Rule, tolerance: float) -> Arrays:
    if layer.cross:
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
    copies = len(values) - len(sequences)
    counts = {"sequences": len(sequences), "copies": copies}
    losses = _losses(inputs, name + LOSS, len(layer.matrices.query))
    return {**predicted, **readings, **counts, **losses}


def _losses(inputs: "Inputs", name: str, heads: int) -> Arrays:
    """Mean rise of the loss per token by removed head, with its error over sequences.

    Every second sequence chooses the cheapest head, the others say what it costs.
    """
    if name not in inputs.arrays:
        return {}
    rises = inputs.read(name)
    if rises.ndim != 2 or len(rises) != heads or rises.shape[1] < 4 or not np.isfinite(rises).all():
        allowed = f"finite rises of {heads} heads in four sequences or more, (head, sequence)"
        raise InputError(name, f"shape {rises.shape}", allowed)
    cheapest = int(rises[:, ::2].mean(1).argmin())
    held_out = rises[cheapest, 1::2]
    return {
        "removal_loss": ("head", rises.mean(1)),
        "removal_loss_mcse": ("head", mcse(rises.T)),
        "cheapest_head": cheapest,
        "cheapest_loss": held_out.mean(),
        "cheapest_loss_mcse": float(mcse(held_out)),
    }


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
        except Exception as error:  # a damaged file raises errors of any kind
            raise InputError(self.source, str(error)[:60], "an npz file") from None
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise InputError(self.source, "one array", "an npz file: layer name to inputs")
        self.arrays = opened

    def name(self, module: str, label: str) -> str | None:
        """Name of a layer's array: its label, or its module's name."""
        for name in (label, module):
            if name in self.arrays:
                self._used |= {name, name + LOSS}
                return name
        return None

    def read(self, name: str) -> np.ndarray:
        """Array with the given name.

        Raises:
            InputError: the array is damaged, or contains objects.
        """
        try:
            return np.asarray(self.arrays[name])
        except Exception as error:
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
    numbers: dict[str, Any] = {
        "heads": weights.sizes["head"],
        "key_heads": weights.sizes["key_head"],
    }
    for name in ("index_key_heads", "index_query_heads"):
        numbers[f"{name}_mean"] = weights[name].sel(definition="mean")
    for name in ("qk_effective_rank", "ov_effective_rank"):
        numbers[f"{name}_median"] = median_rank(weights[name].values)
    numbers["score_correlation_mean"] = mean_of_pairs(weights.score_correlation.values)
    return dict(zip(numbers, map(float, numbers.values()), strict=True))


def _input_summary(readings: xr.Dataset, tolerance: float) -> dict[str, float]:
    """Numbers of a layer from its inputs, summarised from its arrays."""
    numbers = {}
    for name in ("noise_index", "contribution_index"):
        for end in ("", "_mcse") if name in readings else ():
            numbers[f"{name}_mean{end}"] = float(readings[f"{name}{end}"].sel(definition="mean"))
    for name in ("kq_svd", "k_svd"):
        if f"{name}_error" in readings:
            numbers[f"{name}_rank"] = rank_within(readings[f"{name}_error"].values, tolerance)
    if "predicted_noise_correlation" in readings:
        predicted = mean_of_pairs(readings.predicted_noise_correlation.values)
        numbers["predicted_noise_correlation_mean"] = float(predicted)
    return numbers


def scalars(data: xr.Dataset) -> dict[str, np.ndarray]:
    """Scalar numbers per layer, by name."""
    numbers = {}
    for name, values in data.data_vars.items():
        if values.dims == ("layer",) and values.dtype.kind in "iufb":
            numbers[str(name)] = values.values.astype(float)
    return numbers


def exceeded(data: xr.Dataset, limits: Mapping[str, float]) -> list[str]:
    """Lines on layers that exceed a limit.

    Raises:
        InputError: the report has no number of a limit's name.
    """
    numbers = scalars(data)
    lines = []
    for name, limit in limits.items():
        if name not in numbers:
            more = "measured numbers, which need --activations with sequences; from weights "
            known = "" if "redundant_heads" in data else more
            raise InputError("--fail-above", name, known + one_of(numbers, name))
        for label, value in zip(data.label.values, numbers[name], strict=True):
            if value > limit:
                lines.append(f"{listed([label])}: {name} {value:.4g} is above {limit:g}")
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
    return json.loads(json.dumps(values.values.tolist()), parse_constant=lambda _: None)
