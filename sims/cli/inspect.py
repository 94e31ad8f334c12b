"""``sims inspect``: the heads of a model, as a table, JSON, a file and a figure."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims.cli.listing import print_table
from sims.cli.options import writable
from sims.errors import InputError
from sims.files import digest
from sims.inspect import as_json, exceeded, inspect, scalars, stack
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
MEASURED = {
    "typical_effective_keys": "effective keys",
    "noise_kept": "noise kept",
    "contribution_kept": "output kept",
    "merge_error": "merged",
    "prune_error": "pruned",
    "redundant_heads": "redundant",
    "kq_svd_rank": "KQ-SVD",
    "k_svd_rank": "K-SVD",
}
"""Columns of what is measured."""
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
    activations: str | None,
    heads: int | None,
    attention: str | None,
    tolerance: float,
    compare: str | None,
    output: Path | None,
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
    rules: dict[str, Any] = {"heads": heads, "attention": attention, "tolerance": tolerance}
    reports = {name: inspect(name, config, activations, **rules) for name in models}
    data = reports[models[0]]
    lines = [line for report in reports.values() for line in exceeded(report, limits)]
    rival = None if compare is None else _rival_report(compare, data, rules)
    if output is not None:
        _write(reports, output)
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


def _rival_report(path: str, data: xr.Dataset, rules: dict[str, Any]) -> xr.Dataset:
    """The report to compare with: of a file that ``--output`` wrote, or of another model."""
    rival = read(path, FILE) if path.endswith(".nc") else inspect(path, **rules)
    if rival.sizes.get("layer") != data.sizes["layer"] or "checkpoint" in rival.dims:
        raise InputError("--compare", path, f"a model of {data.sizes['layer']} layers")
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


def _print(data: xr.Dataset) -> None:
    for columns in (WEIGHTS, MEASURED):
        known = scalars(data)
        shown = {name: title for name, title in columns.items() if name in known}
        if len(shown) < len(columns):
            continue
        rows = [
            (str(layer), *(_cell(known, name, layer) for name in shown))
            for layer in data.layer.values
        ]
        if columns is MEASURED:
            pairs = data.alike.values
            rows = [(*row[:4], _pair(pairs[k]), *row[4:]) for k, row in enumerate(rows)]
            titles = list(shown.values())
            print_table(("layer", *titles[:3], "alike", *titles[3:]), rows, numbers=True)
            print("In parentheses: Monte Carlo standard error over sequences, of the last digit.")
        else:
            print_table(("layer", *shown.values()), rows, numbers=True)


def _pair(pair: np.ndarray) -> str:
    return "–" if np.isnan(pair).any() else "{:.0f}, {:.0f}".format(*pair)


def _cell(known: dict[str, np.ndarray], name: str, layer: int) -> str:
    value = known[name][layer]
    if np.isnan(value):
        return "–"
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
    for layer in range(data.sizes["layer"]):
        cells = []
        for name in shown:
            errors = [
                numbers.get(f"{name}_mcse", 0 * values[name])[layer]
                for numbers in (values, rival_values)
            ]
            cells.append(
                _with_error(rival_values[name][layer] - values[name][layer], np.hypot(*errors), "+")
            )
        rows.append((str(layer), *cells))
    print(f"{rival.attrs['model']} less {data.attrs['model']}:")
    titles = WEIGHTS | MEASURED
    print_table(("layer", *(titles[name] for name in shown)), rows, numbers=True)
