"""Regimes by first-order theory: best head dimensions as curves in n and D, and best splits."""

import numpy as np
import xarray as xr

from .grids import BUDGETS, GIVEN, SIZES, WIDTHS, splits
from .problems import Curve, Drawn, curve, least

SLOWER = 0.5
"""Factor of a slower decay of relevance over the drawn one."""
ROUGH = 0.5
"""Matérn smoothness of the target that is compared with a squared-exponential one."""


def theory(drawn: Drawn) -> xr.Dataset:
    """The curves of a regime and what was drawn.

    ``error`` (width) is at the drawn n and D, ``covered`` where theory is in its range; ``by_keys``
    (size) and ``by_budget`` (given, of) are d_k*, NaN where censored. ``margin``, ``known``,
    ``inner`` and ``end`` are those of :func:`compare_splits`. ``slower`` and ``rougher`` are
    logarithms of what a slower decay and a rough target make of d_k* under a shared view.
    """
    by_keys = curve(drawn, SIZES, drawn["budget"])
    here = SIZES.tolist().index(drawn["keys"])
    error, covered = by_keys.error[here], by_keys.known[here]
    places = splits(drawn["budget"]) - 1
    shared = drawn["decay"] != "even"
    conditions = GIVEN[:1] if shared else GIVEN
    by_budget = [best(curve(drawn, drawn["keys"], BUDGETS, name)) for name in conditions]
    slow = {name: SLOWER * drawn[name] for name in ("alpha", "power")}
    smooth = {"smoothness": "squared-exponential"}
    rough = {"smoothness": "matern", "roughness": ROUGH}
    return xr.Dataset(
        {
            "error": ("width", error),
            "covered": ("width", covered),
            "by_keys": ("size", best(by_keys)),
            "by_budget": (("given", "of"), np.resize(by_budget, (len(GIVEN), len(BUDGETS)))),
            "slower": moved(drawn, {}, slow) if shared else np.nan,
            "rougher": moved(drawn, smooth, rough) if shared else np.nan,
            **compare_splits(error[places], covered[places]),
            **drawn,
        }
    )


def best(curves: Curve) -> np.ndarray:
    """d_k* as a real number, NaN where it is censored, (K,)."""
    return least(WIDTHS, curves.error, curves.known)[0]


def moved(drawn: Drawn, first: Drawn, second: Drawn) -> float:
    """The logarithm of d_k* under the second change of a regime over that under the first."""
    widths = [best(curve({**drawn, **c}, drawn["keys"], drawn["budget"])) for c in (first, second)]
    return float(np.log(widths[1] / widths[0])[0])


def compare_splits(error: np.ndarray, known: np.ndarray) -> dict[str, float | int | bool]:
    """The best inner split against the better end: heads of dimension 1, or one head.

    ``margin`` is the share by which the inner split errs less, negative if the end does;
    ``known`` whether the end, and the better of the two with its neighbours, are in theory's range;
    ``inner`` and ``end`` are places among the splits.

    Args:
        error: of every whole split, (S,), by width.
        known: whether theory is in its range there, (S,).
    """
    inner = int(error[1:-1].argmin()) + 1
    end = 0 if error[0] < error[-1] else len(error) - 1
    better = inner if error[inner] < error[end] else end
    around = known[max(better - 1, 0) : better + 2]
    return {
        "margin": 1 - error[inner] / error[end],
        "known": bool(known[end] and around.all()),
        "inner": inner,
        "end": end,
    }
