"""Regimes by theory: best head dimensions as curves in n and D, and best splits.

First order in 1/n serves where it has enough effective keys; what it leaves open is exact.
"""

import numpy as np
import xarray as xr

from .comparison import compare_splits, drawn_curve
from .exact import exact_curve
from .grids import BUDGETS, FEWEST, GIVEN, LATENT, SIZES, WIDTHS, grows, splits
from .problems import Curve, Drawn, curve, least

SLOWER = 0.5
"""Factor of a slower decay of relevance over the drawn one."""
ROUGH = 0.5
"""Matérn smoothness of the target that is compared with a squared-exponential one."""


def theory(drawn: Drawn) -> xr.Dataset:
    """The curves of a regime and what was drawn.

    ``error`` (width) is at the drawn n and D, ``covered`` where theory is in its range; ``by_keys``
    (size) and ``by_budget`` (given, of) are d_k*, NaN where it is not known; under a shared view
    d_k*(n) is that of the largest budget, which does not bound it. ``exact_splits``,
    ``exact_keys`` and ``exact_budget`` say which of these are exact. ``margin``, ``known``,
    ``inner`` and ``end`` are those of :func:`.comparison.compare_splits`. ``slower`` and
    ``rougher`` are logarithms of what a slower decay and a rough target make of d_k* under a
    shared view, without tuning, which would cost more than all else.
    """
    budget = drawn["budget"]
    shared = drawn["decay"] != "even"
    ample = BUDGETS[-1] if shared else budget
    widest = LATENT if shared else budget
    conditions = GIVEN[:1] if shared else GIVEN
    by_keys = best(curve(drawn, SIZES, ample))
    by_budget = np.array([best(curve(drawn, drawn["keys"], BUDGETS, name)) for name in conditions])
    here, exact_splits = drawn_curve(drawn)
    error, covered = here.error[0], here.known[0]
    exact_keys = grows(by_keys, widest, not shared) is None
    if exact_keys:
        by_keys = best(exact_curve(drawn, SIZES, ample))
    exact_budget = np.isfinite(by_budget).sum(1) < FEWEST
    for place in np.flatnonzero(exact_budget):
        exact = exact_curve(drawn, drawn["keys"], BUDGETS, condition=conditions[place])
        by_budget[place] = best(exact)
    places = splits(budget) - 1
    moves = shared and drawn["temperature"] != "tuned"
    slow = {name: SLOWER * drawn[name] for name in ("alpha", "power")}
    smooth = {"smoothness": "squared-exponential"}
    rough = {"smoothness": "matern", "roughness": ROUGH}
    return xr.Dataset(
        {
            "error": ("width", error),
            "covered": ("width", covered),
            "by_keys": ("size", by_keys),
            "by_budget": (("given", "of"), np.resize(by_budget, (len(GIVEN), len(BUDGETS)))),
            "exact_splits": exact_splits,
            "exact_keys": exact_keys,
            "exact_budget": exact_budget.any(),
            "slower": moved(drawn, {}, slow) if moves else np.nan,
            "rougher": moved(drawn, smooth, rough) if moves else np.nan,
            **compare_splits(error[places], covered[places]),
            **drawn,
        }
    )


def best(curves: Curve) -> np.ndarray:
    """d_k* as a real number, or as a width at an end of those that are possible, (K,).

    NaN where theory is not in its range at the best width or beside it.
    """
    return least(WIDTHS, curves.error, curves.known)[0]


def moved(drawn: Drawn, first: Drawn, second: Drawn) -> float:
    """The logarithm of d_k* under the second change of a regime over that under the first."""
    regimes = [{**drawn, **change} for change in (first, second)]
    widths = [best(curve(regime, drawn["keys"], drawn["budget"])) for regime in regimes]
    return float(np.log(widths[1] / widths[0])[0])
