"""Effects of the house sample, the sizes of changes, and the answers under every choice."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import mcse, ratio
from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import gap
from sims.judgement.robustness import Cell
from sims.judgement.summaries import Share
from sims.judgement.summarize import summarize
from sims.study.results import Results

from .outcomes import LOOKS, QUESTIONS, change_over_ends, falls_of
from .sets import ALIGNED, COMMON, HAAR, SECOND

READINGS = ("given", "in law")
TEMPERATURES = ("common", "own best")
LEAST_COVERED = 0.1
"""Share of queries in theory's range, below which nothing is said."""
COMPONENTS = {
    "squared bias": "bias",
    "variance": "variance",
    "mean head": "mean_head",
    "diversity": "diversity",
    "between two random sets": "yardstick",
    "share of variance in the error": "variance_share",
}
"""Parts of the change of the error as the answer names them: the first two sum to it, and the next
two. The yardstick follows, and the share of variance to begin with."""
SPECIFIED = ("hdi-monotone", "hdi", "extremes", "adding-heads")
"""Questions of the specification table."""
TERMS = ("bias", "variance", "head_bias", "head_variance", "half_error")
"""Terms that sizes are made of."""
PROBED = ("bias", "variance", "head_variance")
"""Terms at single queries, which are held against theory."""
NOISY = 0.2
"""Label noise over the target's variance that parts the problems in two."""


class Sample:
    """The sample in arrays.

    Attributes:
        law: the population and theory, a row a problem.
        problems: terms of each problem by name, (batch, reading, set, temperature); after the first
            round some are NaN.
        first: number of batches of the first round.
        first_rounds: terms of the first round alone, by which sizes are told.
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
        self.first_rounds = []
        for terms in self.problems:
            self.first_rounds.append({k: values[: self.first] for k, values in terms.items()})

    def means(self) -> xr.Dataset:
        """Means over the first round, (problem, reading, set, temperature), in float64."""
        dims = ("problem", "reading", "set", "temperature")
        means = {}
        for name in TERMS:
            rows = [terms[name].mean(0, dtype=float) for terms in self.first_rounds]
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
    for arrays in sample.first_rounds if first_only else sample.problems:
        draws.append(falls_of(question, arrays, reading, temperature))
    changes = []
    for arrays in sample.first_rounds:
        changes.append(change_over_ends(question, arrays, reading, temperature))
    size = np.array([change.mean() for change in changes])
    if question == "extremes":
        without = ~fits[: len(size)].astype(bool)
        size[without] = np.nan
        for number in np.flatnonzero(without):
            draws[number][:] = np.nan
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
    change from one Haar set to the other; ``variance_share``, that of the first rung's error.
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
            "variance_share": terms["variance"].isel(set=ALIGNED) / start,
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
    simulated: dict[str, list[np.ndarray]] = {name: [] for name in PROBED}
    apart = []
    for number, terms in enumerate(sample.first_rounds):
        mask = covered[number].reshape(sample.first, -1)
        for name in PROBED:
            simulated[name].append(_over_queries(terms[f"probe_{name}"], mask))
        apart.append(_apart(terms, int(law["heads"][number])))
    made = {"angles": gap(np.array(apart), 1 - law["by_angles"].values)}
    values = {name: np.array(rows) for name, rows in simulated.items()}
    values["mse"] = values["bias"] + values["variance"]
    stated = {name: law[f"theory_{name}"].values for name in PROBED}
    stated["mse"] = stated["bias"] + stated["variance"]
    for name, batches in values.items():
        made[name] = gap(batches, stated[name], enough)
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
