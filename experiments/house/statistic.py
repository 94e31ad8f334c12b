"""Effects of the house sample, and its tables: the population, the specifications, the sizes."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import mcse
from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap
from sims.judgement.robustness import Cell
from sims.judgement.summaries import Share, summarize
from sims.judgement.wording import number_range, percent, percent_range, significant
from sims.study.results import Results

from .outcomes import LOOKS, QUESTIONS, change_over_ends, falls_of, ratio
from .sets import ALIGNED, COMMON, HAAR, OWN_BEST, SECOND

if TYPE_CHECKING:
    from .sizes import SizeModel

READINGS = ("given", "in law")
TEMPERATURES = ("common", "own best")
FEWEST_MODELLED = 40
"""Problems below which sizes are not modelled."""
LEAST_COVERED = 0.1
"""Share of queries in theory's range, below which nothing is said."""
COMPONENTS = {
    "squared bias": "bias",
    "variance": "variance",
    "mean head": "mean_head",
    "diversity": "diversity",
    "between two random sets": "yardstick",
}
"""Parts of the change of the error as the answer names them; the first two sum to it, and the next
two; the last is the yardstick."""
SPECIFIED = ("hdi-monotone", "hdi", "extremes", "adding-heads")
"""Questions of the specification table."""
TERMS = ("bias", "variance", "head_bias", "head_variance", "half_error")
"""Terms that sizes are made of."""
NOISY = 0.2
"""Label noise over the target's variance that parts the problems in two."""


class Sample:
    """The sample in arrays.

    Attributes:
        law: the population and theory, a row a problem.
        problems: terms of each problem by name, (batch, reading, set, temperature); after the first
            round some are NaN.
        first: batches of the first round, which sizes are told by.
    """

    def __init__(self, results: Results) -> None:
        self.law = results.predictions["law"]
        self.problems = []
        for name in sorted(results.estimates):
            variables = results.estimates[name].variables
            terms = {str(k): v.values for k, v in variables.items() if "batch" in v.dims}
            self.problems.append(terms)
        probes = self.problems[0]["probe_bias"].shape[1]
        self.first = self.law.sizes["query"] // probes

    def first_round(self, number: int) -> dict[str, np.ndarray]:
        """Terms of a problem by name, all of which the first round has."""
        return {name: values[: self.first] for name, values in self.problems[number].items()}

    def means(self) -> xr.Dataset:
        """Means over the first round, (problem, reading, set, temperature), in float64."""
        dims = ("problem", "reading", "set", "temperature")
        rounds = [self.first_round(number) for number in range(len(self.problems))]
        means = {}
        for name in TERMS:
            rows = [terms[name].mean(0, dtype=float) for terms in rounds]
            means[name] = (dims, np.stack(rows))
        return xr.Dataset(means)


def effects(results: Results) -> Mapping[str, Effects]:
    """Every question's effects: outcomes of order, and gaps of simulation from theory."""
    sample = Sample(results)
    sizes = changes_over_the_ladder(sample)
    made = {}
    for question in QUESTIONS:
        for reading, reading_name in enumerate(READINGS):
            for temperature, temperature_name in enumerate(TEMPERATURES):
                name = f"{question}, {reading_name}, {temperature_name}"
                made[name] = _outcome(sample, question, reading, temperature, sizes)
    made |= _gaps(sample)
    return made


def _outcome(
    sample: Sample, question: str, reading: int, temperature: int, sizes: xr.Dataset
) -> Effects:
    fits = sample.law["fits"].values
    first_only = temperature == COMMON
    draws = []
    for number in range(len(sample.problems)):
        arrays = sample.first_round(number) if first_only else sample.problems[number]
        falls = falls_of(question, arrays, reading, temperature)
        if question == "extremes" and not fits[number]:
            falls = np.full_like(falls, np.nan)
        draws.append(falls)
    changes = [
        change_over_ends(question, sample.first_round(number), reading, temperature)
        for number in range(len(sample.problems))
    ]
    size = np.array([change.mean() for change in changes])
    if question == "extremes":
        size = np.where(fits[: len(size)], size, np.nan)
    components = {}
    if question == "hdi-monotone":
        chosen = sizes.isel(reading=reading, temperature=temperature)
        components = {name: chosen[key].values for name, key in COMPONENTS.items()}
    return Effects(
        value=np.stack([falls.mean(0) for falls in draws]),
        error=np.stack([mcse(falls) for falls in draws]),
        kind="outcome",
        draws=draws,
        looks=1 if first_only else len(LOOKS),
        size=size,
        size_error=np.array([mcse(change) for change in changes]),
        components=components,
    )


def changes_over_the_ladder(sample: Sample) -> xr.Dataset:
    """Relative changes by the first round, (problem, reading, temperature).

    ``error`` from the first rung to the Haar set, over the error of the first, and the same as the
    sums ``mean_head + diversity`` and ``bias + variance``; ``yardstick``, the absolute
    change from one Haar set to the other.
    """
    terms = sample.means()
    error = terms["bias"] + terms["variance"]
    head_error = terms["head_bias"] + terms["head_variance"]
    start = error.isel(set=ALIGNED)

    def rise(values: xr.DataArray) -> xr.DataArray:
        return values.isel(set=HAAR) - values.isel(set=ALIGNED)

    return xr.Dataset(
        {
            "error": rise(error) / start,
            "mean_head": rise(head_error) / start,
            "diversity": rise(error - head_error) / start,
            "bias": rise(terms["bias"]) / start,
            "variance": rise(terms["variance"]) / start,
            "yardstick": abs(error.isel(set=SECOND) / error.isel(set=HAAR) - 1),
        }
    )


def ladder_errors(sample: Sample) -> xr.DataArray:
    """Error of each rung over the first rung's, (problem, reading, temperature, set)."""
    terms = sample.means().isel(set=slice(HAAR + 1))
    error = terms["bias"] + terms["variance"]
    relative = error / error.isel(set=ALIGNED)
    return relative.transpose("problem", "reading", "temperature", "set")


def _gaps(sample: Sample) -> dict[str, Effects]:
    """Gaps of simulation from theory at the first Haar set, at queries in theory's range."""
    law = sample.law
    covered = law["covered"].values[: len(sample.problems)]
    enough = covered.mean(1) >= LEAST_COVERED
    names = ("bias", "variance", "head_variance", "mse", "apart")
    simulated: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for number in range(len(sample.problems)):
        terms = sample.first_round(number)
        mask = covered[number].reshape(sample.first, -1)
        for name in ("bias", "variance", "head_variance"):
            simulated[name].append(_over_queries(terms[f"probe_{name}"], mask))
        simulated["mse"].append(simulated["bias"][-1] + simulated["variance"][-1])
        simulated["apart"].append(_apart(terms, int(law["heads"][number])))
    predicted = {name: law[f"theory_{name}"].values for name in ("bias", "variance")}
    predicted["head_variance"] = law["theory_head_variance"].values
    predicted["mse"] = predicted["bias"] + predicted["variance"]
    made = {
        name: gap(np.array(simulated[name]), predicted[name], enough)
        for name in ("mse", "bias", "variance", "head_variance")
    }
    apart = 1 - law["by_angles"].values
    made["angles"] = gap(np.array(simulated["apart"]), apart)
    return made


def _over_queries(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Means over the covered queries as pseudo-values of the batches, (B,)."""
    inside = np.where(mask, values.astype(float), 0.0).sum(1)
    share = mask.sum(1).mean()
    return np.asarray(inside / share) if share else np.full(len(values), np.nan)


def _apart(terms: Mapping[str, np.ndarray], heads: int) -> np.ndarray:
    """One less the mean noise correlation of two heads of the first Haar set, (B,)."""
    noise = terms["noise"][:, 0, HAAR, COMMON].astype(float)
    head_noise = terms["head_noise"][:, 0, HAAR, COMMON].astype(float)
    pairs = (heads**2 * noise - heads * head_noise) / (heads * (heads - 1))
    return 1 - ratio(pairs, head_noise)


def parameters(results: Results) -> pd.DataFrame:
    """The population, a row a problem: what the law drew, and what the pilot measured."""
    law = results.predictions["law"]
    frame = pd.DataFrame({str(k): v.values for k, v in law.items() if v.dims == ("number",)})
    covered = law["covered"].mean("query").values
    return frame.assign(covered=covered).drop(columns=["shift", "features"], errors="ignore")


def tables(results: Results) -> dict[str, str]:
    """The three tables of the caption, as Markdown."""
    sample = Sample(results)
    frame = parameters(results).iloc[: len(sample.problems)]
    cells = specifications(results, effects(results))
    return {
        "population": _markdown(population(sample, frame)),
        "specification": _markdown(specification_table(cells)),
        "sizes": _markdown(sizes_by_group(sample, frame)),
        "model": _markdown(model_table(size_models(sample, frame))),
    }


def population(sample: Sample, frame: pd.DataFrame) -> pd.DataFrame:
    """Quartiles of what the problems are, by family of the keys."""
    means = sample.means().isel(reading=0, temperature=0)
    error = (means["bias"] + means["variance"]).isel(set=HAAR).values
    head_error = (means["head_bias"] + means["head_variance"]).isel(set=HAAR).values
    rows = frame.assign(
        variance_share=means["variance"].isel(set=HAAR).values / error,
        skill=1 - error / frame["target_variance"],
        kept=error / head_error,
    )
    columns = {
        "n_eff": ("n_eff", significant),
        "n_eff/n": ("selectivity", significant),
        "share of variance in the error": ("variance_share", percent),
        "skill": ("skill", percent),
        "label noise / signal": ("noise_ratio", significant),
        "error / mean head's": ("kept", percent),
    }
    groups = {"all": rows, **dict(list(rows.groupby("family")))}
    lines = []
    for family, group in groups.items():
        line = {"keys": family, "problems": str(len(group))}
        for title, (name, show) in columns.items():
            low, median, high = np.quantile(group[name], (0.25, 0.5, 0.75))
            line[title] = f"{show(median)} ({show(low)} to {show(high)})"
        for edge in (0.02, 0.1, 0.5):
            line[f"n_eff/n < {edge}"] = percent(float((group["selectivity"] < edge).mean()))
        line["no skill"] = percent(float((group["skill"] <= 0).mean()))
        line["redraws per problem"] = significant(float(group["rejected"].mean()), 2)
        lines.append(line)
    return pd.DataFrame(lines)


def specifications(results: Results, effects: Mapping[str, Effects]) -> dict[str, list[Cell]]:
    """The answers to four questions under every choice of reading, temperature and stratum."""
    frame = parameters(results)
    tolerance = house.TOLERANCES["order"]
    cells: dict[str, list[Cell]] = {question: [] for question in SPECIFIED}
    choices = product(READINGS, TEMPERATURES, (False, True), (False, True), (False, True))
    for reading, temperature, shifted, apart, noisy in choices:
        chosen = (
            (frame["shifted"] == shifted)
            & (frame["apart"] == apart)
            & ((frame["noise_ratio"] > NOISY) == noisy)
        )
        words = {
            "heads": reading,
            "temperature": temperature,
            "tuned": "no" if shifted else "yes",
            "maps": "two" if apart else "one",
            "noise / signal": "> 0.2" if noisy else "< 0.2",
        }
        for question in SPECIFIED:
            effect = effects[f"{question}, {reading}, {temperature}"]
            share = summarize(effect, chosen.to_numpy(), tolerance)
            if isinstance(share, Share):
                cells[question].append(Cell(words, share))
    return cells


def specification_table(cells: Mapping[str, Sequence[Cell]]) -> pd.DataFrame:
    """Percentages that hold, fail, are level and undecided in every cell, with the word."""
    lines = []
    for row in zip(*cells.values(), strict=True):
        line = dict(row[0].choices)
        line["problems"] = str(row[0].share.problems)
        for question, cell in zip(cells, row, strict=True):
            line[question] = _cell(cell.share)
        lines.append(line)
    return pd.DataFrame(lines)


def _cell(share: Share) -> str:
    """Text of a cell; too few problems are not shown."""
    counted = share.simulated
    if counted is None or counted.total < house.SHOWN:
        return "–"
    numbers = " / ".join(f"{100 * part:.0f}" for part in counted.parts.values())
    return f"{share.word}: {numbers}" if counted.total >= house.FEWEST else numbers


def size_models(sample: Sample, frame: pd.DataFrame) -> "list[SizeModel]":
    """The size at own best temperatures against selectivity and skill, in both readings.

    Empty of fewer than :data:`FEWEST_MODELLED` problems.
    """
    from .sizes import fit  # imported late: it loads JAX

    if len(frame) < FEWEST_MODELLED:
        return []
    changes = changes_over_the_ladder(sample)["error"].isel(temperature=OWN_BEST)
    models = []
    for reading in range(len(READINGS)):
        errors = []
        for number in range(len(frame)):
            arrays = sample.first_round(number)
            errors.append(mcse(change_over_ends("hdi-monotone", arrays, reading, OWN_BEST)))
        columns = (frame[name].to_numpy() for name in ("selectivity", "skill", "family"))
        change = changes.isel(reading=reading).values
        models.append(fit(100 * change, 100 * np.array(errors), *columns))
    return models


def model_table(models: "list[SizeModel]") -> pd.DataFrame:
    """Coefficients of the models in percentage points, with their central 95 %."""
    names = {
        "intercept": "change at mean n_eff/n and median skill",
        "slope": "per standard deviation of log n_eff/n",
        "skill": "per standard deviation of the skill",
    }
    lines = []
    for name, title in names.items():
        line = {"percentage points": title}
        for reading, model in zip(READINGS, models, strict=False):
            median, low, high = model.coefficients[name]
            line[reading] = f"{significant(median, 2)} ({number_range(low, high)})"
        lines.append(line)
    return pd.DataFrame(lines)


def sizes_by_group(sample: Sample, frame: pd.DataFrame) -> pd.DataFrame:
    """Median change of the error from nearly aligned to random heads, as two sums, by group."""
    sizes = changes_over_the_ladder(sample)
    quarters = pd.qcut(frame["selectivity"], 4, duplicates="drop")
    skilled = frame["skill"] > frame["skill"].median()
    groups = {"all": np.ones(len(frame), bool)}
    for interval in quarters.cat.categories:
        chosen = (quarters == interval).to_numpy()
        inside = frame["selectivity"][chosen]
        groups[f"n_eff/n {significant(inside.min())} to {significant(inside.max())}"] = chosen
    groups |= {"skill below its median": ~skilled.to_numpy()}
    groups |= {"skill above": skilled.to_numpy()}
    names = ("error", "mean_head", "diversity", "bias", "variance", "yardstick")
    lines = []
    shown = {group: chosen for group, chosen in groups.items() if chosen.any()}
    for group, chosen in shown.items():
        for reading, reading_name in enumerate(READINGS):
            for temperature, temperature_name in enumerate(TEMPERATURES):
                part = sizes.isel(problem=chosen, reading=reading, temperature=temperature)
                line = {
                    "problems": f"{group} ({chosen.sum()})",
                    "reading": reading_name,
                    "temperature": temperature_name,
                }
                for name in names:
                    low, median, high = np.quantile(part[name].values, (0.25, 0.5, 0.75))
                    line[name.replace("_", " ")] = f"{percent(median)} ({percent_range(low, high)})"
                lines.append(line)
    return pd.DataFrame(lines)


def _markdown(table: pd.DataFrame) -> str:
    """The table in Markdown."""
    lines = [list(table.columns), ["---"] * len(table.columns)]
    lines += table.astype(str).replace(r"\|", "/", regex=True).values.tolist()
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
