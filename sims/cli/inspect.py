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
from sims.cli.listing import print_table
from sims.cli.options import writable
from sims.inspect import as_json, exceeded, inspect, scalars, stack
from sims.inspect.geometry import DISTANCES
from sims.inspect.report import FILE
from sims.study.results import read, write

WEIGHTS = {
    "heads": "heads",
    "key_heads": "key heads",
    "width": "d_k",
    "overlap_excess": "overlap − random",
    "largest_overlap_excess": "largest",
    "pairs_above_baseline": "pairs above",
    "index_query_heads_mean": "index",
    "index_query_heads_baseline_mean": "random",
    "qk_effective_rank_median": "QK rank",
    "ov_effective_rank_median": "OV rank",
}
"""Columns of what weights say: number to title."""
ROTARY = {
    "qk_effective_rank_median": "QK rank at 0",
    "qk_effective_rank_least": "least",
    "qk_effective_rank_most": "most",
    "score_correlation_mean": "score correlation at 0",
    "score_correlation_least": "least",
    "score_correlation_most": "most",
}
"""Columns of score forms over the distances of rotary positions."""
INPUTS = {
    "input_overlap_excess": "overlap − random",
    "predicted_noise_correlation_mean": "predicted noise correlation",
    "kq_svd_rank": "KQ-SVD",
    "k_svd_rank": "K-SVD",
}
"""Columns of what weights and the covariance of tokens say."""
MEASURED = {
    "typical_effective_keys": "effective keys",
    "noise_kept": "noise kept",
    "token_noise_correlation_mean": "noise correlation",
    "contribution_kept": "output kept",
    "alike": "alike",
    "merge_error": "merged",
    "prune_error": "pruned",
    "redundant_heads": "redundant",
}
"""Columns of what is measured."""
TABLES = (
    ("", WEIGHTS),
    (f"Rotary positions, distances 0 to {DISTANCES[-1]}:", ROTARY),
    ("By the covariance of tokens:", INPUTS),
    ("Measured (in parentheses: standard error over sequences, of the last digit):", MEASURED),
)
"""What is printed above each table, and its columns."""
COMPARED = (
    "overlap_excess",
    "index_query_heads_mean",
    "typical_effective_keys",
    "noise_kept",
    "contribution_kept",
    "merge_error",
    "redundant_heads",
)
"""Numbers whose differences between two models are printed."""


def run(
    models: Sequence[str],
    config: str | None,
    activations: Sequence[str],
    compare: str | None,
    output: Path | None,
    rules: dict[str, Any],
    fail_above: Sequence[str],
    as_text: bool,
) -> bool:
    """Print the report of a model, or write those of several checkpoints into one file.

    Returns:
        Whether no number is above its limit.
    """
    limits = dict(_limit(text) for text in fail_above)
    if output is not None and writable(output).suffix != ".nc":
        raise InputError("--output", str(output), "a file whose name ends in .nc")
    if len(models) > 1 and (output is None or activations or compare):
        allowed = "several models with --output, without --activations and --compare"
        raise InputError("MODEL", f"{len(models)} models", allowed)
    compared = compare is not None and not compare.endswith(".nc")
    if len(activations) > 1 + compared:
        allowed = "one file, and a second with --compare MODEL"
        raise InputError("--activations", f"{len(activations)} files", allowed)
    inputs = [*activations, None, None]
    reports = {name: inspect(name, config, inputs[0], **rules) for name in models}
    data = reports[models[0]]
    lines = [line for report in reports.values() for line in exceeded(report, limits)]
    rival = None if compare is None else _rival_report(compare, inputs[1], data, rules)
    if output is not None:
        _write(reports, output)
    if not as_text:
        _print_notes([*reports.values()] + ([] if rival is None else [rival]))
    if as_text:
        content = [as_json(report) for report in reports.values()]
        print(json.dumps(content if len(content) > 1 else content[0], indent=1, allow_nan=False))
    elif len(models) > 1:
        print_table(("model", "says"), [(k, v.attrs["sentence"]) for k, v in reports.items()])
    else:
        _print(data)
        if rival is not None:
            _compare(data, rival)
        print(data.attrs["sentence"])
    if not as_text:
        print(*lines, *([output] if output else []), sep="\n", end="\n" if lines or output else "")
    return not lines


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise InputError("--fail-above", text, "NAME=NUMBER, such as redundant_share=0.2") from None


def _rival_report(
    path: str, activations: str | None, data: xr.Dataset, rules: dict[str, Any]
) -> xr.Dataset:
    """The report to compare with: of a file that ``--output`` wrote, or of another model."""
    written = path.endswith(".nc")
    rival = read(path, FILE) if written else inspect(path, None, activations, **rules)
    numbers = data.layer.values.tolist()
    if "checkpoint" in rival.dims or rival.layer.values.tolist() != numbers:
        raise InputError("--compare", path, f"a model of {len(numbers)} layers of the same numbers")
    return rival


def _write(reports: dict[str, xr.Dataset], output: Path) -> None:
    if len(reports) > 1:
        write(stack(reports, "checkpoint"), output, FILE)
        return
    from sims.figures import save
    from sims.inspect.figure import figure

    data = next(iter(reports.values()))
    write(data, output, FILE)
    save(figure(data), output, f"sims inspect {data.attrs['model']}", digest(output))


def _print_notes(reports: Sequence[xr.Dataset]) -> None:
    """Print what a reader has to know of each report."""
    for report in reports:
        for note in report.attrs.get("notes", "").splitlines():
            print(f"{report.attrs['model']}: {note}")


def _print(data: xr.Dataset) -> None:
    known = scalars(data) | ({"alike": data.alike.values} if "alike" in data else {})
    for title, columns in TABLES:
        if columns.keys() <= known.keys():
            rows = []
            for place, number in enumerate(data.layer.values):
                rows.append([str(number), *(_cell(known, name, place) for name in columns)])
            if title:
                print(title)
            print_table(("layer", *columns.values()), rows, numbers=True)


def _cell(known: dict[str, np.ndarray], name: str, layer: int) -> str:
    value = known[name][layer]
    if np.isnan(value).any():
        return "–"
    if name == "alike":
        return "{:.0f}, {:.0f}".format(*value)
    return _with_error(value, known.get(f"{name}_mcse", np.zeros(len(known[name])))[layer])


def _with_error(value: float, error: float, sign: str = "") -> str:
    """A number with its standard error in units of its last digit: 0.123(4)."""
    if not error > 1e-9 * abs(value):
        return f"{value:{sign}.3g}"
    digits = max(0, -math.floor(math.log10(error)))
    return f"{value:{sign}.{digits}f}({error * 10**digits:.0f})"


def _compare(data: xr.Dataset, rival: xr.Dataset) -> None:
    """Print by how much the other model's numbers differ from this one's."""
    values, rival_values = scalars(data), scalars(rival)
    shown = [name for name in COMPARED if name in values and name in rival_values]
    rows = []
    for layer, number in enumerate(data.layer.values):
        cells = []
        for name in shown:
            errors = [
                numbers.get(f"{name}_mcse", 0 * values[name])[layer]
                for numbers in (values, rival_values)
            ]
            cells.append(
                _with_error(rival_values[name][layer] - values[name][layer], np.hypot(*errors), "+")
            )
        rows.append((str(number), *cells))
    print(f"{rival.attrs['model']} less {data.attrs['model']}:")
    titles = WEIGHTS | MEASURED
    print_table(("layer", *(titles[name] for name in shown)), rows, numbers=True)
