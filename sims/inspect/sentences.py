"""Summary of a report in words."""

import re
from collections.abc import Sequence

import numpy as np
import xarray as xr


def sentence(data: xr.Dataset) -> str:
    """Summary of the report: redundant heads by layer, and overlaps against the baseline."""
    above = data.label.values[data.pairs_above_baseline.values > 0].tolist()
    compared = data.overlap_excess.notnull().values
    if "redundant_heads" not in data:
        return _sentence_of_overlaps(above, int(compared.sum()))
    counts = data.redundant_heads.values
    parts = _count_redundant(data)
    parts[0] += f" at {100 * data.attrs['tolerance']:.3g} % output error"
    not_redundant = data.label.values[compared & (counts == 0)].tolist()
    beyond = [layer for layer in not_redundant if layer in above]
    if beyond:
        parts.append(f"key subspaces of {listed(beyond)} overlap more than random ones")
    if len(beyond) < len(not_redundant):
        parts.append("the rest is within the baseline")
    unseen = data.label.values[np.isnan(counts)].tolist()
    if unseen:
        parts.append(f"{listed(unseen)} without activations")
    return capitalised("; ".join(parts) + ".")


def capitalised(text: str) -> str:
    """Text with a capital letter, unless it begins with the name of a module."""
    return re.sub("^[a-z]+(?= )", lambda word: word[0].capitalize(), text)


def _sentence_of_overlaps(above: list[str], compared: int) -> str:
    """Clause on layers with overlaps above the baseline, among those with comparable heads."""
    if not compared:
        return "No two key subspaces to compare."
    if not above:
        return "No key subspaces overlap more than random ones."
    end = "; the rest is within the baseline" * (len(above) < compared)
    return capitalised(f"{listed(above)}: key subspaces overlap more than random ones{end}.")


def _count_redundant(data: xr.Dataset) -> list[str]:
    """Clauses on layers by their number of redundant heads, from the most."""
    layers_by_count: dict[tuple[int, int], list[str]] = {}
    columns = (data.label.values, data.redundant_heads.values, data.heads.values)
    for layer, count, total in zip(*columns, strict=True):
        if count > 0:
            layers_by_count.setdefault((int(count), int(total)), []).append(layer)
    clauses = []
    for (count, total), rows in sorted(layers_by_count.items(), reverse=True):
        verb = "is" if count == 1 else "are"
        clauses.append(f"{listed(rows)}: {count} of {total} heads {verb} redundant")
    return clauses or ["no head is redundant"]


def listed(names: Sequence[str]) -> str:
    """``layer 3``, ``layers 3 and 7``, ``layers 0–5``, or names of modules."""
    if not all(name.isdigit() for name in names):
        return ", ".join(names)
    numbers = np.array(names, int)
    words: list[str] = []
    for run in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1):
        words += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run)
    joined = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    return f"layer{'s' * (len(names) > 1)} {joined}"
