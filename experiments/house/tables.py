"""Tables of the house sample for its caption: population, specifications and sizes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from sims.judgement import conventions
from sims.judgement.robustness import Cell
from sims.judgement.summaries import Share
from sims.judgement.wording import markdown_table, percent, percent_range, significant
from sims.study.declaration import Declaration
from sims.study.judge import cells_of
from sims.study.panels import Panels
from sims.study.results import Results

from .reach import coverage_table
from .sets import ALIGNED, BY_QUERY, COMMON, DRAWN, EQUAL, HAAR, OWN_BEST, READINGS, TEMPERATURES
from .statistic import (
    COMPONENTS,
    TERMS,
    VARIANCES,
    Sample,
    changes_over_the_ladder,
    inequality,
    straightness,
)

RESAMPLES = 1000
"""Bootstrap samples of problems."""
COLUMNS = {
    "ridge on x: error / average's": ("ridge", percent),
    "one head of full width: error / average's": ("full_head", percent),
    "index": ("diversity", significant),
    "n_eff": ("n_eff", significant),
    "n_eff/n": ("selectivity", significant),
    "share of variance in the error": ("variance_share", percent),
    "skill": ("skill", percent),
    "label noise / signal": ("noise_ratio", significant),
    "error / mean head's": ("kept", percent),
}
"""Title of a column of the population to its quantity and how it is written."""
SIZED = ((DRAWN, OWN_BEST), (DRAWN, COMMON), (EQUAL, COMMON), (EQUAL, OWN_BEST))
"""Readings and temperatures of the table of sizes."""
SIZES = {"error": "error", "error at own best temperatures": "own_error"} | COMPONENTS | VARIANCES
"""Titles of the columns to the changes."""
QUARTILES = (0.25, 0.5, 0.75)
Lines = list[dict[str, str]]
"""Rows of a table, each title of a column to its cell."""


def panels(results: Results) -> xr.Dataset:
    """Changes over the ladder by problem, and what the ladder's random set as drawn is.

    ``straightness`` is the R² of the errors of equally good rungs on the index, ``inequality`` the
    difference of mean heads in standard errors, and ``random_`` terms those of the random set at
    the common temperature. ``tuned_error`` are errors of nearly aligned and of random heads as
    drawn at their own best temperatures.
    """
    sample = Sample(results)
    shown = changes_over_the_ladder(sample)
    shown["straightness"] = ("problem", straightness(sample))
    shown["inequality"] = ("problem", inequality(sample))
    for name in TERMS:
        values = sample.first_round[name][:, :, DRAWN, HAAR, COMMON]
        shown[f"random_{name}"] = ("problem", values.mean(1, dtype=float))
    ends = [sample.error(place)[:, DRAWN, OWN_BEST] for place in (ALIGNED, HAAR)]
    shown["tuned_error"] = (("problem", "end"), np.stack(ends, axis=1))
    for name in BY_QUERY:
        shown[name] = (("problem", "query"), sample.law[name].values)
    return shown


def tables(panels: Panels) -> dict[str, str]:
    """The tables of the caption, as Markdown, and a sentence on the equality of heads."""
    shown = panels.arrays
    frame = panels.parameters.iloc[: shown.sizes["problem"]]
    spec = Declaration.read(Path(__file__).parent).spec
    asked = [question for question in spec.questions if question.specifications]
    cells = {question.id: cells_of(panels.table, question) for question in asked}
    return {
        "population": markdown_table(population(shown, frame)),
        "specification": markdown_table(specification_table(cells)),
        "sizes": markdown_table(sizes_by_group(shown, frame)),
        "coverage": markdown_table(coverage_table(frame, shown["tuned_error"].values)),
        "equality": equality_in_words(shown["inequality"].values),
    }


def population(shown: xr.Dataset, frame: pd.DataFrame) -> Lines:
    """Quartiles of what the problems are, by family of the keys; the baselines come first."""
    error = (shown["random_bias"] + shown["random_variance"]).values
    head_error = (shown["random_head_bias"] + shown["random_head_variance"]).values
    rows = frame.assign(
        variance_share=shown["random_variance"].values / error,
        skill=1 - error / frame["target_variance"],
        kept=error / head_error,
    )
    lines = []
    for family, group in [("all", rows), *rows.groupby("family")]:
        line = {"keys": family, "problems": str(len(group))}
        line["average beats both"] = percent(float(group["beats"].mean()))
        for title, (name, show) in COLUMNS.items():
            low, median, high = np.quantile(group[name], QUARTILES)
            line[title] = f"{show(median)} ({show(low)} to {show(high)})"
        for edge in (0.02, 0.1, 0.5):
            line[f"n_eff/n < {edge}"] = percent(float((group["selectivity"] < edge).mean()))
        line["no skill"] = percent(float((group["skill"] <= 0).mean()))
        line["not equally good"] = percent(float((~group["equal"].astype(bool)).mean()))
        line["redraws per problem"] = significant(float(group["rejected"].mean()), 2)
        lines.append(line)
    return lines


def equality_in_words(distances: np.ndarray) -> str:
    """Number of problems whose mean heads differ in raw means, by standard errors."""
    known = distances[np.isfinite(distances)]
    far = int((abs(known) > conventions.CALLED).sum())
    return f"{far} of {len(known)} problems"


def specification_table(cells: Mapping[str, Sequence[Cell]]) -> Lines:
    """Percentages that hold, fail, are level and undecided in every cell, with the word."""
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    choices = {name: "" for one in cells.values() for name in one[0].choices}
    empty = choices | {"problems": ""} | dict.fromkeys(cells, "–")
    for question, of_question in cells.items():
        for cell in of_question:
            line = lines.setdefault(tuple(cell.choices.values()), empty | cell.choices)
            line["problems"] = line["problems"] or str(cell.share.problems)
            line[question] = _cell(cell.share)
    return [*lines.values()]


def _cell(share: Share) -> str:
    """Text of a cell; too few problems are not shown."""
    counted = share.simulated
    if counted is None or counted.total < conventions.SHOWN:
        return "–"
    numbers = " / ".join(f"{100 * part:.0f}" for part in counted.parts.values())
    return f"{share.word}: {numbers}" if counted.total >= conventions.FEWEST else numbers


def groups_of_problems(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Which problems are in a group: all, by kernel and H, and those beyond the baselines."""
    groups = {"all": np.ones(len(frame), bool)}
    for kernel in sorted(frame["kernel"].unique()):
        groups[f"{kernel} kernel"] = (frame["kernel"] == kernel).to_numpy()
    for heads in sorted(frame["heads"].unique()):
        groups[f"H = {heads}"] = (frame["heads"] == heads).to_numpy()
    groups["average beats both baselines"] = frame["beats"].to_numpy(bool)
    return groups


def sizes_by_group(shown: xr.Dataset, frame: pd.DataFrame) -> Lines:
    """Median change of the error from nearly aligned to random heads, as two sums, by group."""
    lines = []
    for group, chosen in groups_of_problems(frame).items():
        for reading, temperature in SIZED:
            part = shown.isel(problem=chosen, reading=reading, temperature=temperature)
            part = part.isel(problem=np.isfinite(part["error"].values))
            if not part.sizes["problem"]:
                continue
            line = {
                "problems": f"{group} ({part.sizes['problem']})",
                "reading": READINGS[reading],
                "temperature": TEMPERATURES[reading][temperature],
            }
            for title, name in SIZES.items():
                line[title] = median_in_words(part[name].values)
            low, high = (float(v) for v in np.quantile(part["error"], (0.25, 0.75)))
            line["quartiles of the error's"] = percent_range(low, high)
            line["R²"] = "–"
            if (reading, temperature) == (EQUAL, COMMON):
                line["R²"] = significant(float(part["straightness"].median()), 2)
            lines.append(line)
    return lines


def median_in_words(values: np.ndarray) -> str:
    """Median of relative changes with its 95 % interval, by bootstrap over problems."""
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(values, (RESAMPLES, len(values))), axis=1)
    low, high = (float(v) for v in np.quantile(medians, (0.025, 0.975)))
    return f"{percent(float(np.median(values)))} ({percent_range(low, high)})"
