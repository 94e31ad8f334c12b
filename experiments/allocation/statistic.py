"""Effects of the regimes: a best split inside, the growth of d_k* with n, and of H* with D."""

import numpy as np
import pandas as pd
import xarray as xr

from sims.judgement import house
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import of_batches
from sims.study.results import Results

from .grids import BUDGETS, GIVEN, SIZES, splits

DECADES, RISE, LONG = 2.0, 2.0, 4.0
"""Decades of n over which d_k* is known, and widths by which it rises, from which a form of growth
is told; and decades over which a smaller rise is none."""
FEWEST = 3
"""Budgets, each twice the one before, at which d_k* has to be known for an exponent."""
POWERS = np.linspace(0.01, 1, 100)
"""Exponents that the power law of n may have."""
FORMS = ("log n", "√log n", "a power of n", "hardly any", "not known")
"""What d_k* grows like."""
NONE, CENSORED = FORMS[3:]


def effects(results: Results) -> dict[str, Effects]:
    """Effects by name. The simulated regimes are asked about splits; of curves theory speaks."""
    law, names = results.predictions["law"], sorted(results.estimates)
    silent = np.full((len(names), 2), np.nan)
    here = np.arange(law.sizes["number"]), (law["keys"].values[:, None] == SIZES).argmax(1)
    simulated = []
    for number, name in enumerate(names):
        regime = law.isel(number=number)
        errors = split_errors(results.estimates[name], int(regime["budget"]))
        inner, end = errors[int(regime["inner"])], errors[int(regime["end"])]
        simulated.append((end - inner) / inner.mean())
    grown = growth(law["by_keys"].values)
    slopes = {given: exponents(law["by_budget"].values[:, k]) for k, given in enumerate(GIVEN)}
    # Under a shared view nothing hangs on what is given.
    shared = slopes[GIVEN[0]]
    margin = house.TOLERANCES["slope"] - np.abs(np.nan_to_num(shared) - 1)
    estimates = {name: law[name].values for name in ("slower", "rougher")}
    estimates |= {f"exponent, {given}": slope for given, slope in slopes.items()}
    estimates["rate"] = grown["rate"].to_numpy()
    known, decided = law["known"].values[here], (grown["form"] != CENSORED).to_numpy()
    predicted, better = law["excess"].values[here], grown["better"].to_numpy()
    return {
        "allocation": of_batches(np.stack(simulated), predicted=predicted, valid=known),
        "dk-log": of_batches(silent, predicted=better, valid=decided),
        "heads-linear": of_batches(silent, predicted=margin, valid=np.isfinite(shared)),
    } | {k: of_batches(silent, kind="estimate", predicted=v) for k, v in estimates.items()}


def split_errors(data: xr.Dataset, budget: int) -> np.ndarray:
    """Simulated errors of the whole splits of a budget, (split, target)."""
    names = ("bias_product", "signal_covariance", "noise_covariance")
    pair = np.sum([data[f"integrated_{name}"].values.mean(0) for name in names], 0)
    share = splits(budget)[:, None] / budget
    single = pair[:, [0, 1], [0, 1]].mean(-1).reshape(len(share), -1)
    both = pair[:, [0, 1], [1, 0]].mean(-1).reshape(single.shape)
    return np.asarray(share * single + (1 - share) * both)


def growth(by_keys: np.ndarray) -> pd.DataFrame:
    """How d_k*(n), (regime, n), grows, by regimes.

    ``form`` is that of :data:`FORMS` that leaves the fewest squares of d_k*: a line in log n, one
    in √log n, or a power of n without a constant. ``better`` is the logarithm of what the better
    rival leaves over what log n leaves; −1 of no growth, 0 of a censored curve. ``rate`` is in
    widths a decade.
    """
    rows, log = [], np.log(SIZES)
    for curve_ in by_keys:
        known = np.isfinite(curve_)
        x, y = log[known], curve_[known]
        decades = (len(x) - 1) * np.log10(SIZES[1] / SIZES[0])
        if decades < DECADES:
            rows.append((CENSORED, 0.0, np.nan))
            continue
        lines = [_left(form - form.mean(), y - y.mean()) for form in (x, x**0.5)]
        power = min(_left(np.exp(p * (x - x[0])), y) for p in POWERS)
        squares, rise = np.maximum([*lines, power], 1e-12), y[-1] - y[0]
        form, better = FORMS[squares.argmin()], np.log(squares[1:].min() / squares[0])
        if rise < RISE:
            form, better = (NONE, -1.0) if decades >= LONG else (CENSORED, 0.0)
        rows.append((form, better, rise / np.log10(np.exp(x[-1] - x[0]))))
    return pd.DataFrame(rows, columns=["form", "better", "rate"])


def _left(form: np.ndarray, y: np.ndarray) -> float:
    """Squares that a multiple of a form leaves of y."""
    return float(y @ y - (form @ y) ** 2 / (form @ form))


def exponents(by_budget: np.ndarray) -> np.ndarray:
    """The slope of log H* on log D, by regimes (regime, D); NaN where few d_k* are known."""
    log, slopes = np.log(BUDGETS), np.full(len(by_budget), np.nan)
    for place, known in enumerate(np.isfinite(by_budget)):
        if known.sum() >= FEWEST:
            x = log[known]
            slopes[place] = np.polyfit(x, x - np.log(by_budget[place, known]), 1)[0]
    return slopes


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a regime; ``shared`` is 1 where heads share a view."""
    law = results.predictions["law"].drop_vars(["inner", "end", "slower", "rougher"])
    columns = {name: v.values for name, v in law.items() if v.dims == ("number",)}
    return pd.DataFrame(columns).assign(shared=(law["decay"].values != "even").astype(float))
