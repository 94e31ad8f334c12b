"""Regimes by first-order theory: best head dimensions as curves in n and D, and best splits."""

import numpy as np
import xarray as xr

from .grids import BUDGETS, GIVEN, SIZES, WIDTHS, splits
from .problems import Curve, Drawn, curve, least

SLOWER, ROUGH = 0.5, 0.5
"""Factor of the decay of relevance in a regime beside the drawn one, and Matérn smoothness of the
target that is held against a squared-exponential one."""


def predicted(drawn: Drawn) -> xr.Dataset:
    """The curves of a regime and what was drawn.

    ``error`` (width) is at the drawn n and D, ``covered`` where theory is in its range; ``by_keys``
    (size) and ``by_budget`` (given, of) are d_k*, NaN where censored. Of whole splits of the drawn
    budget ``excess`` and ``known`` (size) are those of :func:`compared`, by n; ``inner`` and
    ``end`` its other parts at the drawn n. ``slower`` and ``rougher`` are logarithms of what a
    slower decay and a rough target make of d_k* under a shared view.
    """
    by_keys = curve(drawn, SIZES, drawn["budget"])
    excess, known, inner, end = compared(by_keys, splits(drawn["budget"]))
    here, shared = SIZES.tolist().index(drawn["keys"]), drawn["decay"] != "even"
    conditions = GIVEN[:1] if shared else GIVEN
    by_budget = [best(curve(drawn, drawn["keys"], BUDGETS, name)) for name in conditions]
    slow = {name: SLOWER * drawn[name] for name in ("alpha", "power")}
    smooth = {"smoothness": "squared-exponential"}
    rough = {"smoothness": "matern", "roughness": ROUGH}
    return xr.Dataset(
        {
            "error": ("width", by_keys.error[here]),
            "covered": ("width", by_keys.known[here]),
            "by_keys": ("size", best(by_keys)),
            "by_budget": (("given", "of"), np.resize(by_budget, (len(GIVEN), len(BUDGETS)))),
            "excess": ("size", excess),
            "known": ("size", known),
            "inner": inner[here],
            "end": end[here],
            "slower": moved(drawn, {}, slow) if shared else np.nan,
            "rougher": moved(drawn, smooth, rough) if shared else np.nan,
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


def compared(curves: Curve, widths: np.ndarray) -> tuple[np.ndarray, ...]:
    """The best inner split beside the better of the ends, width 1 and one head, by rows of errors.

    Returns:
        How much larger the end's error is, a share; whether the better of the two and its
        neighbours are in theory's range; and the places of the best inner split and of that end.
    """
    error, known = curves.error[:, widths - 1], curves.known[:, widths - 1]
    rows, last = np.arange(len(error)), len(widths) - 1
    inner = error[:, 1:-1].argmin(1) + 1
    end = np.where(error[:, 0] < error[:, -1], 0, last)
    share = error[rows, end] / error[rows, inner] - 1
    better = np.where(share > 0, inner, end)
    near = np.stack([np.maximum(better - 1, 0), better, np.minimum(better + 1, last)])
    return share, known[rows, near].all(0), inner, end
