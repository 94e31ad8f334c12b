"""Effects of the regimes: by how much an inner split wins, and how d_k* and H* grow."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import ratio
from sims.judgement import conventions
from sims.judgement.effects import Effects, gap, mean, share
from sims.study.batches import drawn_values
from sims.study.panels import Panels
from sims.study.results import Results

from .grids import BUDGETS, FEWEST, GIVEN, LATENT, SIZES, grows, inner_part, splits

POWERS = np.linspace(0.01, 1, 100)
"""Exponents that the power law of n may have."""
FORMS = ("log n", "√log n", "a power of n", "hardly any", "not known")
"""Forms of the growth of d_k*."""
NONE, CENSORED = FORMS[3:]
EXACT_ERROR = 1e-3
"""Standard error of a margin by exact theory: its quasi-random waves and directions."""


def effects(results: Results) -> dict[str, Effects]:
    """Effects by name: simulation and theory compare splits, theory alone has curves."""
    law = results.predictions["law"]
    growths = growth_of_law(law)
    estimates = {name: law[name].values for name in ("slower", "rougher")}
    estimates["rate"] = growths["rate"].to_numpy()
    slope = conventions.TOLERANCES["slope"]
    decided = (growths["form"] != CENSORED).to_numpy()
    silent = np.full((len(results.estimates), 2), np.nan)
    made = compare_splits(results)
    made["dk-log"] = share(silent, predicted=growths["better"].to_numpy(), valid=decided)
    steady = slope - np.abs(growths["bend"].to_numpy() - 1)
    made["steady"] = share(silent, predicted=steady, valid=decided)
    for place, given in enumerate(GIVEN):
        exponent = exponents(law["by_budget"].values[:, place])
        inside = slope - np.abs(np.nan_to_num(exponent) - 1)
        valid = np.isfinite(exponent)
        made[f"linear, {given}"] = share(silent, predicted=inside, valid=valid)
        estimates[f"exponent, {given}"] = exponent
    for name, values in estimates.items():
        made[name] = mean(silent, predicted=values)
    return made


def compare_splits(results: Results) -> dict[str, Effects]:
    """Whether the best inner split errs less than the better end by more than the tolerance."""
    law = results.predictions["law"]
    known, exact = (law[name].values.astype(bool) for name in ("known", "exact_splits"))
    margin = law["margin"].values
    least = conventions.TOLERANCES["order"]
    unsure = np.where(known, np.where(exact, EXACT_ERROR, 0.0), np.inf)
    size = np.where(known, -margin, np.nan)
    margins = []
    ratios = []
    for number, errors in enumerate(simulated_errors(results)):
        inner, end = (int(law[name][number]) for name in ("inner", "end"))
        margins.append(margin_of_halves(errors))
        ratios.append(ratio(errors[:, inner], errors[:, end]))
    simulated = share(np.stack(margins) - least)
    return {
        "allocation": Effects(margin - least, unsure, "share", size=size),
        "simulated": replace(simulated, size=-simulated.value - least),
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


def growth_of_law(law: xr.Dataset) -> pd.DataFrame:
    """:func:`growth` of every regime's curve."""
    apart = law["decay"].values == "even"
    return growth(law["by_keys"].values, np.where(apart, law["budget"].values, LATENT), apart)


def growth(by_keys: np.ndarray, most: np.ndarray, limited: np.ndarray) -> pd.DataFrame:
    """How d_k*(n), (regime, n), grows, by regimes with these widest heads, ``limited`` by them.

    ``form`` is that of :data:`FORMS` that leaves the fewest squares of d_k*: a line in log n, one
    in √log n, or a power of n without a constant. ``better`` is the logarithm of what the better
    rival leaves over what log n leaves; −1 of no growth, 0 of a curve that is not known enough.
    ``bend`` is the slope in log n of the second half of its range over that of the first, 0 of no
    growth. ``rate`` is in widths per decade.
    """
    rows = []
    for widths, widest_head, is_limited in zip(by_keys, most, limited, strict=True):
        rows.append(growth_of_curve(widths, int(widest_head), bool(is_limited)))
    return pd.DataFrame(rows, columns=["form", "better", "bend", "rate"])


def growth_of_curve(
    by_keys: np.ndarray, most: int, limited: bool
) -> tuple[str, float, float, float]:
    """The row of one curve d_k*(n), (n,), NaN where it is not known."""
    rises = grows(by_keys, most, limited)
    used = inner_part(by_keys, most) if rises else np.isfinite(by_keys)
    x = np.log(SIZES[used])
    y = by_keys[used]
    if rises is None:
        return CENSORED, 0.0, np.nan, np.nan
    rate = (y[-1] - y[0]) / np.log10(np.exp(x[-1] - x[0]))
    if not rises:
        return NONE, -1.0, 0.0, rate
    lines = [squares_left(form - form.mean(), y - y.mean()) for form in (x, x**0.5)]
    power = min(squares_left(np.exp(p * (x - x[0])), y) for p in POWERS)
    squares = np.maximum([*lines, power], 1e-12)
    better = float(np.log(squares[1:].min() / squares[0]))
    half = len(x) // 2
    first = np.polyfit(x[: half + 1], y[: half + 1], 1)[0]
    last = np.polyfit(x[-half - 1 :], y[-half - 1 :], 1)[0]
    return FORMS[squares.argmin()], better, last / max(first, 1e-9), rate


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
        exact=drawn["exact_splits"].astype(float),
    )


def panels(results: Results) -> xr.Dataset:
    """Form of growth of d_k* of all regimes."""
    form = growth_of_law(results.predictions["law"])["form"]
    return xr.Dataset({"form": ("number", form.to_numpy(str))})


def numbers(panels: Panels) -> dict[str, Any]:
    """For the caption: exponents of H* by relevance, what is exact, how often methods disagree."""
    drawn = panels.parameters
    both = panels.effects
    theory, simulated = (both[name].call for name in ("allocation", "simulated"))
    theory = theory[: len(simulated)]
    decided = (theory != 0) & (simulated != 0)
    slopes = both[f"exponent, {GIVEN[0]}"].predicted
    assert slopes is not None
    known = slopes[(drawn["decay"] != "even") & np.isfinite(slopes)]
    exact = drawn[["exact_splits", "exact_keys", "exact_budget"]].astype(bool)
    resimulated = exact["exact_splits"] & drawn["known"].astype(bool)
    return {
        "exponents": (known.min(initial=1), known.max(initial=1)),
        "decided": int(decided.sum()),
        "opposite": int((decided & (theory != simulated)).sum()),
        "exact": int(exact.any(axis=1).sum()),
        "resimulated": int(resimulated[: len(simulated)].sum()),
    }
