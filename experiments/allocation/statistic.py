"""Effects of the regimes: by how much an inner split wins, and how d_k* and H* grow."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import mcse, ratio
from sims.judgement import conventions
from sims.judgement.effects import Effects, gap, mean, outcome_over_pairs, share
from sims.study.batches import drawn_values
from sims.study.panels import Panels
from sims.study.results import Results

from .grids import BUDGETS, GIVEN, SIZES, splits

DECADES = 2.0
"""Decades of n over which d_k* has to be known to tell a form of growth."""
RISE = 2.0
"""Widths by which d_k* has to rise to tell a form of growth."""
LONG = 4.0
"""Decades over which a smaller rise counts as none."""
FEWEST = 3
"""Budgets, each twice the one before, at which d_k* has to be known for an exponent."""
POWERS = np.linspace(0.01, 1, 100)
"""Exponents that the power law of n may have."""
FORMS = ("log n", "√log n", "a power of n", "hardly any", "not known")
"""Forms of the growth of d_k*."""
NONE, CENSORED = FORMS[3:]


def effects(results: Results) -> dict[str, Effects]:
    """Effects by name: simulation and theory compare splits, theory alone has curves."""
    law = results.predictions["law"]
    growths = growth(law["by_keys"].values)
    estimates = {name: law[name].values for name in ("slower", "rougher")}
    estimates["rate"] = growths["rate"].to_numpy()
    for place, given in enumerate(GIVEN):
        estimates[f"exponent, {given}"] = exponents(law["by_budget"].values[:, place])
    # Under a shared view nothing hangs on what is given.
    exponent = estimates[f"exponent, {GIVEN[0]}"]
    inside = conventions.TOLERANCES["slope"] - np.abs(np.nan_to_num(exponent) - 1)
    better = growths["better"].to_numpy()
    decided = (growths["form"] != CENSORED).to_numpy()
    silent = np.full((len(results.estimates), 2), np.nan)
    made = compare_splits(results)
    made["dk-log"] = share(silent, predicted=better, valid=decided)
    made["heads-linear"] = share(silent, predicted=inside, valid=np.isfinite(exponent))
    for name, values in estimates.items():
        made[name] = mean(silent, predicted=values)
    return made


def compare_splits(results: Results) -> dict[str, Effects]:
    """Whether the best inner split errs less than the better end, by theory and by simulation."""
    law = results.predictions["law"]
    known = law["known"].values.astype(bool)
    margin = law["margin"].values
    unsure = np.where(known, 0.0, np.inf)[:, None]
    size = np.where(known, -margin, np.nan)
    margins = []
    ratios = []
    for number, errors in enumerate(simulated_errors(results)):
        inner, end = (int(law[name][number]) for name in ("inner", "end"))
        margins.append(margin_of_halves(errors)[:, None])
        ratios.append(ratio(errors[:, inner], errors[:, end]))
    simulated = outcome_over_pairs(margins)
    return {
        "allocation": Effects(margin[:, None], unsure, "outcome", size=size),
        "simulated": replace(simulated, size=-simulated.value[:, 0]),
        "roads": gap(np.stack(ratios), 1 - margin, known),
    }


def simulated_errors(results: Results) -> list[np.ndarray]:
    """Batches of the errors of whole splits, (batch, split), of every simulated regime."""
    budgets = results.predictions["law"]["budget"].values
    return [
        split_errors(results.estimates[name], int(budget))
        for name, budget in zip(sorted(results.estimates), budgets, strict=False)
    ]


def split_errors(data: xr.Dataset, budget: int) -> np.ndarray:
    """``E e_h²/H + (1 − 1/H) E e_h e_g`` of the whole splits of a budget, (batch, split)."""
    share = splits(budget) / budget
    single, pair = (data[name].transpose("batch", "split").values for name in ("single", "pair"))
    return share * single + (1 - share) * pair


def margin_of_halves(errors: np.ndarray) -> np.ndarray:
    """The share by which the best inner split errs less than the better end, (batch,).

    Both are chosen on the even batches and compared on the odd ones, and the other way round.
    """
    margin = np.empty(len(errors))
    for chosen_on in (0, 1):
        mean = errors[chosen_on::2].mean(0)
        inner = mean[1:-1].argmin() + 1
        end = 0 if mean[0] < mean[-1] else -1
        fresh = slice(1 - chosen_on, None, 2)
        margin[fresh] = 1 - ratio(errors[fresh, inner], errors[fresh, end])
    return margin


def growth(by_keys: np.ndarray) -> pd.DataFrame:
    """How d_k*(n), (regime, n), grows, by regimes.

    ``form`` is that of :data:`FORMS` that leaves the fewest squares of d_k*: a line in log n, one
    in √log n, or a power of n without a constant. ``better`` is the logarithm of what the better
    rival leaves over what log n leaves; −1 of no growth, 0 of a censored curve. ``rate`` is in
    widths per decade.
    """
    rows = [growth_of_curve(curve) for curve in by_keys]
    return pd.DataFrame(rows, columns=["form", "better", "rate"])


def growth_of_curve(curve: np.ndarray) -> tuple[str, float, float]:
    """The row of one curve d_k*(n), (n,), NaN where it is not known."""
    known = np.isfinite(curve)
    x = np.log(SIZES[known])
    y = curve[known]
    decades = (len(x) - 1) * np.log10(SIZES[1] / SIZES[0])
    if decades < DECADES:
        return CENSORED, 0.0, np.nan
    rise = y[-1] - y[0]
    rate = rise / np.log10(np.exp(x[-1] - x[0]))
    if rise < RISE:
        return (NONE, -1.0, rate) if decades >= LONG else (CENSORED, 0.0, rate)
    lines = [squares_left(form - form.mean(), y - y.mean()) for form in (x, x**0.5)]
    power = min(squares_left(np.exp(p * (x - x[0])), y) for p in POWERS)
    squares = np.maximum([*lines, power], 1e-12)
    return FORMS[squares.argmin()], float(np.log(squares[1:].min() / squares[0])), rate


def squares_left(form: np.ndarray, y: np.ndarray) -> float:
    """Squares that a multiple of a form leaves of y."""
    return float(y @ y - (form @ y) ** 2 / (form @ form))


def exponents(by_budget: np.ndarray) -> np.ndarray:
    """The slope of log H* on log D, by regimes (regime, D); NaN where few d_k* are known."""
    log = np.log(BUDGETS)
    slopes = np.full(len(by_budget), np.nan)
    for place, known in enumerate(np.isfinite(by_budget)):
        if known.sum() >= FEWEST:
            x = log[known]
            slopes[place] = np.polyfit(x, x - np.log(by_budget[place, known]), 1)[0]
    return slopes


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a regime, and of it what questions are restricted by."""
    drawn = drawn_values(results, "inner", "end", "slower", "rougher", "margin")
    return drawn.assign(
        shared=(drawn["decay"] != "even").astype(float),
        tuned=(drawn["temperature"] == "tuned").astype(float),
        known=drawn["known"].astype(float),
    )


def panels(results: Results) -> xr.Dataset:
    """Form of growth of d_k* of all regimes, and errors over the inner split's of simulated ones.

    ``theory`` is along all widths, ``simulated`` along whole splits, NaN after the last one.
    """
    law = results.predictions["law"]
    every = simulated_errors(results)
    law_of_simulated = law.isel(number=slice(len(every)))
    most = max(errors.shape[1] for errors in every)
    simulated = np.full((2, len(every), most), np.nan)
    theory = law_of_simulated["error"].values.copy()
    for number, errors in enumerate(every):
        inner = int(law["inner"][number])
        theory[number] /= theory[number, splits(int(law["budget"][number]))[inner] - 1]
        ratios = ratio(errors, errors[:, [inner]])
        simulated[:, number, : errors.shape[1]] = ratios.mean(0), mcse(ratios)
    return xr.Dataset(
        {
            "form": ("number", growth(law["by_keys"].values)["form"].to_numpy(str)),
            "theory": (("regime", "width"), theory),
            "covered": (("regime", "width"), law_of_simulated["covered"].values),
            "simulated": (("regime", "split"), simulated[0]),
            "simulated_error": (("regime", "split"), simulated[1]),
        }
    )


def numbers(panels: Panels) -> dict[str, Any]:
    """For the caption: exponents of H* by relevance, and how often the methods disagree."""
    both = panels.effects
    tolerance = conventions.TOLERANCES["order"]
    theory, simulated = (both[name].within(tolerance).call for name in ("allocation", "simulated"))
    theory = theory[: len(simulated)]
    decided = (theory != 0) & (simulated != 0)
    exponent = both[f"exponent, {GIVEN[0]}"].predicted
    assert exponent is not None
    shared = exponent[panels.parameters["decay"] != "even"]
    known = shared[np.isfinite(shared)]
    return {
        "exponents": (known.min(initial=1), known.max(initial=1)),
        "decided": int(decided.sum()),
        "opposite": int((decided & (theory != simulated)).sum()),
    }
