"""``sims inspect``: the heads of a model, as a table, JSON, a file and a figure."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims.base.errors import InputError
from sims.base.files import digest
from sims.base.places import place
from sims.cli.listing import after_result, print_table
from sims.cli.options import netcdf_file
from sims.inspect import as_json, exceeded, inspect, scalars
from sims.inspect.report import FILE
from sims.study.results import read, write

WEIGHTS = {
    "heads": "heads",
    "key_heads": "key heads",
    "width": "d_k",
    "overlap_excess": "overlap − random",
    "largest_overlap_excess": "largest",
    "qk_effective_rank_median": "QK rank",
    "ov_effective_rank_median": "OV rank",
    "value_kept": "OV alignment",
}
"""Columns of the table of weights: number to title."""
INPUTS = {
    "input_overlap_excess": "overlap − random",
    "predicted_noise_correlation_mean": "predicted noise correlation",
    "kq_svd_rank": "KQ-SVD rank",
    "k_svd_rank": "K-SVD rank",
}
"""Columns of the table of weights and the covariance of tokens."""
MEASURED = {
    "typical_effective_keys": "effective keys",
    "noise_kept": "patterns kept",
    "contribution_kept": "outputs kept",
    "input_value_kept": "OV alignment",
    "alike": "alike",
    "merge_error": "merged",
    "cheapest_error": "cheapest",
    "redundant_heads": "redundant",
}
"""Columns of the table of measurements."""
CACHES = {"kq_svd_output_error": "KQ-SVD", "k_svd_output_error": "K-SVD"}
"""Columns of the table of compressed caches."""
LOSSES = {"cheapest_head": "head", "cheapest_loss": "change"}
"""Columns of the table of losses."""
TABLES = (
    ("", WEIGHTS),
    ("By the covariance of tokens:", INPUTS),
    ("Error of the output with caches of these ranks:", CACHES),
    (
        "Measured (kept: share of variance that an average of heads keeps, 1/H if uncorrelated; in"
        " parentheses: standard error over sequences, of the last digit):",
        MEASURED,
    ),
    ("Change of the loss, nats a token, with the layer's cheapest head at its mean:", LOSSES),
)
"""Text above each table, and its columns."""
KNOWN = "results/published/trained_models/panels.nc"
"""What averages keep in the models that are published, by pass."""
COMPARED = (
    "overlap_excess",
    "value_kept",
    "typical_effective_keys",
    "noise_kept",
    "contribution_kept",
    "merge_error",
    "redundant_heads",
)
"""Numbers whose differences between two models are printed."""


def run(
    model: str,
    config: str | None,
    activations: Sequence[str],
    compare: str | None,
    output: Path | None,
    rules: dict[str, Any],
    fail_above: Sequence[str],
    print_json: bool,
) -> bool:
    """Print the report of a model.

    Args:
        model: path of the model.
        config: path of config.json; None if it is next to the model.
        activations: paths of the inputs of the model and of the compared model.
        compare: path of the compared model, or of a written report.
        output: path of the output.
        rules: ``heads``, ``attention`` and ``tolerance``.
        fail_above: limits ``NAME=NUMBER``.
        print_json: print JSON in place of tables.

    Returns:
        True if no number exceeds its limit.

    Raises:
        InputError: an option is invalid, alone or with the others, or a model cannot be read.
    """
    limits = dict(_limit(text) for text in fail_above)
    if output is not None:
        netcdf_file(output)
    compared = compare is not None and not compare.endswith(".nc")
    if len(activations) > 1 + compared:
        allowed = "one file, and a second with --compare MODEL"
        raise InputError("--activations", f"{len(activations)} files", allowed)
    inputs = [*activations, None, None]
    data = inspect(model, config, inputs[0], **rules)
    lines = exceeded(data, limits)
    rival = None if compare is None else _rival_report(compare, inputs[1], data, rules)
    if output is not None:
        _write(data, output)
    if print_json:
        print(json.dumps(as_json(data), indent=1, allow_nan=False))
        return not lines
    print(data.attrs["advice"])
    for report in (data, rival):
        if report is not None:
            for note in report.attrs.get("notes", "").splitlines():
                print(f"{report.attrs['model']}: {note}")
    _print(data)
    if rival is not None:
        with after_result("comparison"):
            _compare(data, rival)
    print(data.attrs["sentence"], *lines, sep="\n")
    if output is not None:
        print(output)
    return not lines


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        limit = float(value)
    except ValueError:
        limit = math.nan
    if math.isnan(limit):
        raise InputError("--fail-above", text, "NAME=NUMBER, such as redundant_share=0.2")
    return name, limit


def _rival_report(
    path: str, activations: str | None, data: xr.Dataset, rules: dict[str, Any]
) -> xr.Dataset:
    """Report to compare with: a file written by ``--output``, or a second model's report."""
    written = path.endswith(".nc")
    rival = read(path, FILE) if written else inspect(path, None, activations, **rules)
    numbers = data.layer.values.tolist()
    if rival.layer.values.tolist() != numbers:
        raise InputError("--compare", path, f"a model of {len(numbers)} layers of the same numbers")
    return rival


def _write(data: xr.Dataset, output: Path) -> None:
    from sims.figures import save
    from sims.inspect.figure import figure

    write(data, output, FILE)
    with after_result("figure"):
        save(figure(data), output, f"sims inspect {data.attrs['model']}", digest(output))


def _print(data: xr.Dataset) -> None:
    known = scalars(data)
    if "alike" in data:
        known["alike"] = data.alike.values
    for title, columns in TABLES:
        if columns.keys() <= known.keys():
            rows = []
            for place, label in enumerate(data.label.values):
                rows.append([label, *(_cell(known, name, place) for name in columns)])
            if title:
                print(title)
            print_table(("layer", *columns.values()), rows, numbers=True)
    if "noise_kept" in data:
        with after_result("published models"):
            _print_known()


def _print_known() -> None:
    """Print the same numbers of the published models, if they are at hand: medians of layers."""
    if not (path := place(KNOWN)).is_file():
        return
    columns = {"kept": "patterns kept", "written_kept": "outputs kept"}
    passes = read(path)[["model", "tokens", *columns]].to_dataframe()
    passes = passes[passes["tokens"] == "all tokens"]
    rows = []
    for model, layers in passes.groupby("model"):
        medians = layers[[*columns]].median()
        rows.append([str(model), str(len(layers)), *(f"{share:.2f}" for share in medians)])
    print("For comparison, published models (medians of layers):")
    print_table(("model", "layers", *columns.values()), rows, numbers=True)


def _cell(known: dict[str, np.ndarray], name: str, layer: int) -> str:
    value = known[name][layer]
    if np.isnan(value).any():
        return "–"
    if name == "alike":
        return "{:.0f}, {:.0f}".format(*value)
    return _with_error(value, known.get(f"{name}_mcse", 0 * known[name])[layer])


def _with_error(value: float, error: float, sign: str = "") -> str:
    """Number with its standard error in units of the last digit, such as 0.123(4)."""
    if not error > 1e-9 * abs(value):
        return f"{value:{sign}.3g}"
    digits = max(0, -math.floor(math.log10(error)))
    return f"{value:{sign}.{digits}f}({error * 10**digits:.0f})"


def _compare(data: xr.Dataset, rival: xr.Dataset) -> None:
    """Print the differences of the second model's numbers from the first's."""
    values = scalars(data)
    rival_values = scalars(rival)
    shown = [name for name in COMPARED if name in values.keys() & rival_values.keys()]
    rows = [[label] for label in data.label.values]
    for name in shown:
        change = rival_values[name] - values[name]
        key = f"{name}_mcse"
        error = np.hypot(values.get(key, 0 * change), rival_values.get(key, 0 * change))
        for row, value, uncertainty in zip(rows, change, error, strict=True):
            row.append(_with_error(value, uncertainty, "+"))
    print(f"{rival.attrs['model']} minus {data.attrs['model']}:")
    titles = WEIGHTS | MEASURED
    print_table(("layer", *(titles[name] for name in shown)), rows, numbers=True)
