"""Effects of the house sample, and the sizes of changes."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import jackknife, mcse, ratio
from sims.judgement.effects import Effects, gap, mean, outcome, outcome_over_pairs, sized_outcome
from sims.study.batches import drawn_values
from sims.study.results import Results

from .outcomes import (
    AGAIN,
    FIRST_ROUND,
    FROM_ALIGNED,
    LOOKS,
    QUESTIONS,
    Order,
    controlled,
    extra_falls,
    falls_of,
    gain_falls,
)
from .reach import gaps
from .sets import (
    ALIGNED,
    COMMON,
    DRAWN,
    EQUAL,
    HAAR,
    LADDER,
    OWN_BEST,
    READINGS,
    TEMPERATURES,
)

COMPONENTS = {
    "squared bias": "bias",
    "variance": "variance",
    "mean head": "mean_head",
    "diversity": "diversity",
    "third random set over the second": "yardstick",
}
"""Parts of the change of the error as the answer names them: the first two sum to it, and the next
two. The yardstick follows, with its sign."""
VARIANCES = {"variance at own best temperatures": "own_variance", "its share of the error": "share"}
"""Parts that are named with the variance kept."""
TERMS = ("bias", "variance", "head_bias", "head_variance")
"""Terms that sizes are made of."""
DIMS = ("problem", "reading", "temperature")


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

    def error(self, place: int) -> np.ndarray:
        """Mean error of a set in the first round, (problem, reading, temperature)."""
        cell = np.s_[:, :, :, place]
        terms = self.first_round["bias"][cell] + self.first_round["variance"][cell]
        return np.asarray(terms.mean(1, dtype=float))


def effects(results: Results) -> Mapping[str, Effects]:
    """Every question's effects: outcomes of order, and gaps of simulation from theory."""
    sample = Sample(results)
    changes = changes_over_the_ladder(sample)
    made = {}
    for reading, name in enumerate(READINGS):
        for temperature, label in enumerate(TEMPERATURES[reading]):
            parts = changes.isel(reading=reading, temperature=temperature)
            for question in QUESTIONS:
                effect = _outcomes(sample, question, (reading, temperature), parts)
                made[f"{question}, {name}, {label}"] = effect
        extra = extra_falls(sample.first_round, reading)
        made[f"adding-heads, {name}"] = outcome(extra, size=extra.mean(1))
    falls = gain_falls(sample.first_round)
    made["random-aligned, with a gain"] = outcome(falls, size=-falls.mean(1))
    made |= guides(sample)
    made["re-invested"] = mean(reinvested(sample))
    aligned = np.s_[:, :, DRAWN, ALIGNED, COMMON]
    spread, head_spread = (sample.first_round[name][aligned] for name in TERMS[1::2])
    made["aligned kept"] = mean(ratio(spread.astype(float), head_spread.astype(float), axis=1))
    made |= gaps(results.estimates, sample.law)
    return made | {"angles": gap(_apart(sample), 1 - sample.law["by_angles"].values)}


def _outcomes(sample: Sample, question: str, cell: tuple[int, int], parts: xr.Dataset) -> Effects:
    order = QUESTIONS[question]
    ends = ((order.pairs[0][0], order.pairs[-1][1]),)
    change = -falls_of(order._replace(pairs=ends), sample.first_round, *cell)[..., 0]
    again = question in AGAIN and cell == (DRAWN, OWN_BEST)
    if again:
        draws = [falls_of(order, arrays, *cell) for arrays in sample.problems]
    else:
        draws = [*falls_of(order, sample.first_round, *cell)]
    if question == "extremes":
        without = np.flatnonzero(sample.law["fits"].values == 0)
        change[without] = np.nan
        draws = [of + (np.nan if k in without else 0.0) for k, of in enumerate(draws)]
    names = COMPONENTS if order.quantity == "error" else VARIANCES
    named = {name: parts[key].values for name, key in names.items()}
    return outcome_over_pairs(
        draws,
        looks=len(LOOKS) if again else 1,
        size=change.mean(1),
        size_error=mcse(change.T),
        components=named if question not in ("chance", "extremes") else {},
    )


def guides(sample: Sample) -> dict[str, Effects]:
    """By how much the random set that a guide prefers errs less than the other one as drawn.

    The guides are the index of the key subspaces, and the error on the pilot. Falls are relative to
    the error of the ladder's set.
    """
    falls = falls_of(QUESTIONS["chance"], sample.first_round, DRAWN, OWN_BEST)[..., 0]
    leads = {"index": sample.law["rival_index"].values, "pilot": 1 - sample.law["rival"].values}
    made = {}
    for guide, lead in leads.items():
        made[f"guide, {guide}"] = sized_outcome(np.sign(lead)[:, None] * falls)
    return made


def reinvested(sample: Sample) -> np.ndarray:
    """What is re-invested as drawn, over the aligned set's error, as pseudo-values (N, B).

    That is the least of three amounts: the variance that random heads save at their best
    temperature, the variance that aligned heads gain from their own best one to that one, and the
    squared bias that they lose by it.
    """

    def term(name: str, place: int, temperature: int) -> np.ndarray:
        return sample.first_round[name][:, :, DRAWN, place, temperature].T.astype(float)

    cold = term("variance", ALIGNED, COMMON)
    bias, own = (term(name, ALIGNED, OWN_BEST) for name in ("bias", "variance"))
    amounts = {
        "saved": cold - term("variance", HAAR, COMMON),
        "spent": cold - own,
        "returned": bias - term("bias", ALIGNED, COMMON),
    }

    def least(means: Mapping[str, np.ndarray]) -> np.ndarray:
        parts = [means[name] for name in amounts]
        return np.asarray(np.minimum.reduce(parts) / means["error"])

    return jackknife({**amounts, "error": bias + own}, least).T


def changes_over_the_ladder(sample: Sample) -> xr.Dataset:
    """Relative changes by the first round, (problem, reading, temperature).

    ``error`` from the first rung to the Haar set, over the error of the first, and the same as the
    sums ``mean_head + diversity`` and ``bias + variance``. In equally good sets the difference of
    the mean heads is their control, so that it is left out. ``yardstick`` is the change from the
    Haar set to the third one. Each end at its own best temperature, whatever the temperature:
    ``own_error`` and ``own_variance``, each over the first rung's, and ``share``, that of variance
    in the first rung's error.
    """
    terms = {name: sample.first_round[name].astype(float) for name in TERMS}
    head = terms.pop("head_bias") + terms.pop("head_variance")
    error = terms["bias"] + terms["variance"]
    parts = {"error": error, "mean_head": head, "diversity": error - head} | terms
    start = error[:, :, :, ALIGNED].mean(1, keepdims=True)
    differences = {}
    for name, part in parts.items():
        differences[name] = (part[:, :, :, HAAR] - part[:, :, :, ALIGNED]) / start
    control = differences["mean_head"][:, :, EQUAL].copy()
    made: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    for name, difference in differences.items():
        rest = controlled(difference[:, :, EQUAL], control)
        difference[:, :, EQUAL] = 0 * control if name == "mean_head" else rest
        made[name] = (DIMS, difference.mean(1))
    means = {"own_error": error.mean(1), "own_variance": terms["variance"].mean(1)}
    for name, values in means.items():
        change = values[:, :, HAAR, COMMON] / values[:, :, ALIGNED, OWN_BEST] - 1
        made[name] = (DIMS[:2], change)
    mean_error, variance = means.values()
    yardstick = np.empty_like(mean_error[:, :, HAAR])
    for cell in np.ndindex(2, 2):
        falls = falls_of(QUESTIONS["chance"], sample.first_round, *cell)
        yardstick[:, *cell] = -falls.mean((1, 2))
    made["yardstick"] = (DIMS, yardstick)
    share = variance[:, :, ALIGNED, OWN_BEST] / mean_error[:, :, ALIGNED, OWN_BEST]
    return xr.Dataset(made | {"share": (DIMS[:2], share)})


def ladder_errors(sample: Sample, reading: int, temperature: int) -> np.ndarray:
    """Error of each rung over the first rung's, (problem, rung)."""
    order = Order("error", FROM_ALIGNED)
    falls = falls_of(order, sample.first_round, reading, temperature).mean(1)
    return np.column_stack([np.ones(len(falls)), 1 - falls])


def straightness(sample: Sample) -> np.ndarray:
    """R² of the error of equally good sets on the index over the ladder, at random's best, (N,)."""
    errors = ladder_errors(sample, EQUAL, COMMON)
    index = np.array(LADDER) - np.mean(LADDER)
    errors = errors - errors.mean(1, keepdims=True)
    square = (errors**2).sum(1) * (index**2).sum()
    return np.asarray((errors @ index) ** 2 / np.where(square > 0, square, np.nan))


def inequality(sample: Sample) -> np.ndarray:
    """Differences of the mean heads' errors of equally good ends in standard errors, (N,).

    At random's best temperature, by raw means: normal if heads are equally good alone.
    """
    head = sample.first_round["head_bias"] + sample.first_round["head_variance"]
    difference = np.subtract(*np.moveaxis(head[:, :, EQUAL, [HAAR, ALIGNED], COMMON], -1, 0))
    error = mcse(difference.T.astype(float))
    return np.asarray(difference.mean(1) / np.where(error > 0, error, np.nan))


def _apart(sample: Sample) -> np.ndarray:
    """One less the mean noise correlation of two heads of the Haar set, (problem, batch)."""
    place = np.s_[:, :, DRAWN, HAAR, COMMON]
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
