"""Tables of the house sample for its caption: population, specifications, sizes and their model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import mcse
from sims.judgement import conventions
from sims.judgement.robustness import Cell
from sims.judgement.summaries import Share, quartiles_in_words
from sims.judgement.wording import markdown_table, number_range, percent, significant
from sims.study.declaration import Declaration
from sims.study.judge import cells_of
from sims.study.panels import Panels
from sims.study.results import Results

from .outcomes import change_over_ends
from .reach import coverage_table
from .sets import ALIGNED, BY_QUERY, HAAR, OWN_BEST
from .statistic import (
    READINGS,
    TEMPERATURES,
    Sample,
    changes_over_the_ladder,
    ladder_errors,
    parameters,
)

if TYPE_CHECKING:
    from .sizes import SizeModel

COEFFICIENTS = {
    "intercept": "change at mean n_eff/n and median skill",
    "slope": "per standard deviation of log n_eff/n",
    "skill": "per standard deviation of the skill",
}
"""Coefficient of the model of sizes to its name in the table."""
FEWEST_MODELLED = 40
"""Problems below which sizes are not modelled."""
COLUMNS = {
    "index": ("diversity", significant),
    "n_eff": ("n_eff", significant),
    "n_eff/n": ("selectivity", significant),
    "share of variance in the error": ("variance_share", percent),
    "skill": ("skill", percent),
    "label noise / signal": ("noise_ratio", significant),
    "error / mean head's": ("kept", percent),
}
"""Title of a column of the population to its quantity and how it is written."""
QUARTILES = (0.25, 0.5, 0.75)
Lines = list[dict[str, str]]
"""Rows of a table, each title of a column to its cell."""


def panels(results: Results) -> xr.Dataset:
    """Changes over the ladder by problem, what the random set is, and models of the sizes.

    ``ladder`` are errors of the rungs over the first one's at own best temperatures; ``random_``
    terms are those of the random set as drawn at the common temperature. ``curve`` has n_eff/n,
    median and ends of each model, and ``coefficients`` the same three numbers; both are absent of
    few problems. ``tuned_error`` are those of nearly aligned and of random heads as
    drawn at their own best temperatures.
    """
    sample = Sample(results)
    shown = changes_over_the_ladder(sample)
    shown["ladder"] = ladder_errors(sample).isel(temperature=OWN_BEST)
    means = sample.means().isel(reading=0, temperature=0, set=HAAR)
    shown["random_variance"] = means["variance"]
    shown["random_error"] = means["bias"] + means["variance"]
    shown["random_head_error"] = means["head_bias"] + means["head_variance"]
    terms = sample.means().isel(reading=0, temperature=OWN_BEST)
    tuned = (terms["bias"] + terms["variance"]).values[:, [ALIGNED, HAAR]]
    shown["tuned_error"] = (("problem", "end"), tuned)
    for name in BY_QUERY:
        shown[name] = (("problem", "query"), sample.law[name].values)
    if models := size_models(sample, parameters(results).iloc[: len(sample.problems)]):
        curves = [np.vstack([np.exp(model.x), model.curve]) for model in models]
        told = []
        for model in models:
            told.append([model.coefficients[name] for name in COEFFICIENTS])
        shown["curve"] = (("reading", "line", "place"), curves)
        shown["coefficients"] = (("reading", "coefficient", "quantile"), told)
    return shown


def tables(panels: Panels) -> dict[str, str]:
    """The tables of the caption, as Markdown."""
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
        "model": markdown_table(model_table(shown)),
    }


def population(shown: xr.Dataset, frame: pd.DataFrame) -> Lines:
    """Quartiles of what the problems are, by family of the keys."""
    error = shown["random_error"].values
    rows = frame.assign(
        variance_share=shown["random_variance"].values / error,
        skill=1 - error / frame["target_variance"],
        kept=error / shown["random_head_error"].values,
    )
    lines = []
    for family, group in [("all", rows), *rows.groupby("family")]:
        line = {"keys": family, "problems": str(len(group))}
        for title, (name, show) in COLUMNS.items():
            low, median, high = np.quantile(group[name], QUARTILES)
            line[title] = f"{show(median)} ({show(low)} to {show(high)})"
        for edge in (0.02, 0.1, 0.5):
            line[f"n_eff/n < {edge}"] = percent(float((group["selectivity"] < edge).mean()))
        line["no skill"] = percent(float((group["skill"] <= 0).mean()))
        line["redraws per problem"] = significant(float(group["rejected"].mean()), 2)
        lines.append(line)
    return lines


def specification_table(cells: Mapping[str, Sequence[Cell]]) -> Lines:
    """Percentages that hold, fail, are level and undecided in every cell, with the word."""
    lines = []
    for row in zip(*cells.values(), strict=True):
        line = row[0].choices | {"problems": str(row[0].share.problems)}
        for question, cell in zip(cells, row, strict=True):
            line[question] = _cell(cell.share)
        lines.append(line)
    return lines


def _cell(share: Share) -> str:
    """Text of a cell; too few problems are not shown."""
    counted = share.simulated
    if counted is None or counted.total < conventions.SHOWN:
        return "–"
    numbers = " / ".join(f"{100 * part:.0f}" for part in counted.parts.values())
    return f"{share.word}: {numbers}" if counted.total >= conventions.FEWEST else numbers


def size_models(sample: Sample, frame: pd.DataFrame) -> "list[SizeModel]":
    """The size at own best temperatures against selectivity and skill, in both readings.

    Empty of fewer than :data:`FEWEST_MODELLED` problems.
    """
    from .sizes import fit  # imported late: it loads JAX

    if len(frame) < FEWEST_MODELLED:
        return []
    changes = changes_over_the_ladder(sample)["error"].isel(temperature=OWN_BEST)
    columns = {name: frame[name].to_numpy() for name in ("selectivity", "skill", "family")}
    models = []
    for reading in range(len(READINGS)):
        batches = change_over_ends("hdi-monotone", sample.first_round, reading, OWN_BEST)
        change = changes.isel(reading=reading).values
        models.append(fit(100 * change, 100 * mcse(batches.T), **columns))
    return models


def model_table(shown: xr.Dataset) -> Lines:
    """Coefficients of the models in percentage points, with their central 95 %."""
    lines = []
    for row, title in enumerate(COEFFICIENTS.values()):
        line = {"percentage points": title}
        for place, reading in enumerate(READINGS if "coefficients" in shown else ()):
            median, low, high = shown["coefficients"].values[place, row]
            line[reading] = f"{significant(median, 2)} ({number_range(low, high)})"
        lines.append(line)
    return lines


def groups_of_problems(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Which problems are in a group: all, quarters of n_eff/n, and halves of the skill."""
    quarters = pd.qcut(frame["selectivity"], 4, duplicates="drop")
    groups = {"all": np.ones(len(frame), bool)}
    for interval in quarters.cat.categories:
        chosen = (quarters == interval).to_numpy()
        inside = frame["selectivity"][chosen]
        groups[f"n_eff/n {significant(inside.min())} to {significant(inside.max())}"] = chosen
    skilled = (frame["skill"] > frame["skill"].median()).to_numpy()
    groups |= {"skill below its median": ~skilled, "skill above": skilled}
    return groups


def sizes_by_group(shown: xr.Dataset, frame: pd.DataFrame) -> Lines:
    """Median change of the error from nearly aligned to random heads, as two sums, by group."""
    names = ("error", "mean_head", "diversity", "bias", "variance", "yardstick")
    lines = []
    for group, chosen in groups_of_problems(frame).items():
        for reading, temperature in np.ndindex(len(READINGS), len(TEMPERATURES)):
            if not chosen.any():
                continue
            part = shown.isel(problem=chosen, reading=reading, temperature=temperature)
            line = {
                "problems": f"{group} ({chosen.sum()})",
                "reading": READINGS[reading],
                "temperature": TEMPERATURES[temperature],
            }
            for name in names:
                quartiles = np.quantile(part[name].values, QUARTILES)
                line[name.replace("_", " ")] = quartiles_in_words(tuple(quartiles))
            lines.append(line)
    return lines
