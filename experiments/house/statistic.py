"""Effects of the house sample, the sizes of changes, and the answers under every choice."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import mcse, ratio
from sims.judgement.effects import Effects, gap, outcome_over_pairs
from sims.study.batches import drawn_values
from sims.study.results import Results

from .outcomes import FIRST_ROUND, LOOKS, QUESTIONS, change_over_ends, falls_of
from .reach import gaps
from .sets import ALIGNED, COMMON, HAAR, SECOND

READINGS = ("given", "in law")
TEMPERATURES = ("common", "own best")
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
TERMS = ("bias", "variance", "head_bias", "head_variance", "half_error")
"""Terms that sizes are made of."""


class Sample:
    """The sample in arrays.

    Attributes:
        law: the population and theory, a row a problem.
        problems: terms of each problem by name, (batch, reading, set, temperature); after the first
            round some are NaN.
        first_round: the terms of all problems in the first round, by which sizes are told,
            (problem, batch, …).
    """

    def __init__(self, results: Results) -> None:
        self.law = results.predictions["law"]
        self.problems = []
        for name in sorted(results.estimates):
            variables = results.estimates[name].variables
            terms = {str(k): v.values for k, v in variables.items() if "batch" in v.dims}
            self.problems.append(terms)
        batches = min(FIRST_ROUND, *(len(terms["bias"]) for terms in self.problems))
        self.first_round = {}
        for name in self.problems[0]:
            self.first_round[name] = np.stack([terms[name][:batches] for terms in self.problems])

    def means(self) -> xr.Dataset:
        """Means over the first round, (problem, reading, set, temperature), in float64."""
        dims = ("problem", "reading", "set", "temperature")
        means = {name: (dims, self.first_round[name].mean(1, dtype=float)) for name in TERMS}
        return xr.Dataset(means)


def effects(results: Results) -> Mapping[str, Effects]:
    """Every question's effects: outcomes of order, and gaps of simulation from theory."""
    sample = Sample(results)
    made = {}
    cells = product(QUESTIONS, enumerate(READINGS), enumerate(TEMPERATURES))
    for question, (reading, reading_name), (temperature, temperature_name) in cells:
        name = f"{question}, {reading_name}, {temperature_name}"
        made[name] = _outcomes(sample, question, reading, temperature)
    made |= gaps(results.estimates, sample.law)
    return made | {"angles": gap(_apart(sample), 1 - sample.law["by_angles"].values)}


def _outcomes(sample: Sample, question: str, reading: int, temperature: int) -> Effects:
    changes = change_over_ends(question, sample.first_round, reading, temperature)
    size = changes.mean(1)
    looks = 1 if temperature == COMMON else len(LOOKS)
    if temperature == COMMON:
        draws = [*falls_of(question, sample.first_round, reading, temperature)]
    else:
        draws = [falls_of(question, arrays, reading, temperature) for arrays in sample.problems]
    if question == "extremes":
        for number in np.flatnonzero(sample.law["fits"].values == 0):
            size[number] = np.nan
            draws[number][:] = np.nan
    components = {}
    if question == "hdi-monotone":
        chosen = changes_over_the_ladder(sample).isel(reading=reading, temperature=temperature)
        components = {name: chosen[key].values for name, key in COMPONENTS.items()}
    return outcome_over_pairs(
        draws, looks=looks, size=size, size_error=mcse(changes.T), components=components
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
    parts = terms[["bias", "variance"]].assign(
        error=error, mean_head=head_error, diversity=error - head_error
    )
    changes = (parts.isel(set=HAAR) - parts.isel(set=ALIGNED)) / start
    return changes.assign(
        yardstick=abs(error.isel(set=SECOND) / error.isel(set=HAAR) - 1),
        variance_share=terms["variance"].isel(set=ALIGNED) / start,
    )


def ladder_errors(sample: Sample) -> xr.DataArray:
    """Error of each rung over the first rung's, (problem, reading, temperature, set)."""
    terms = sample.means().isel(set=slice(HAAR + 1))
    error = terms["bias"] + terms["variance"]
    relative = error / error.isel(set=ALIGNED)
    return relative.transpose("problem", "reading", "temperature", "set")


def _apart(sample: Sample) -> np.ndarray:
    """One less the mean noise correlation of two heads of the first Haar set, (problem, batch)."""
    place = np.s_[:, :, 0, HAAR, COMMON]
    noise = sample.first_round["noise"][place].astype(float)
    head_noise = sample.first_round["head_noise"][place].astype(float)
    heads = sample.law["heads"].values[:, None]
    pairs = (heads**2 * noise - heads * head_noise) / (heads * (heads - 1))
    return 1 - ratio(pairs, head_noise, axis=1)


def parameters(results: Results) -> pd.DataFrame:
    """The population, a row a problem: what the law drew, and what the pilot measured."""
    names = map(str, results.predictions["law"])
    theory = [name for name in names if name.startswith("theory_")]
    return drawn_values(results, "shift", "features", *theory)
