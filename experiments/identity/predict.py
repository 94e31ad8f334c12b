"""What theory says of the same points: no gap, and how much attention a missing tilt moves."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ive


def predict(experiment: Any, fidelity: str) -> dict[str, xr.Dataset]:
    """Every point's prediction, under the names that ``simulate`` gives the points."""
    settings = experiment.settings | experiment.settings.get(fidelity, {})
    single, layer, tilt = settings["single"], settings["layer"], settings["tilt"]
    names = [
        f"single n={n} d_k={width} s={ratio}√d_k"
        for n in single["n"]
        for width in single["width"]
        for ratio in single["temperature"]
    ]
    names += [f"layer H={heads} d_k={width}" for heads, width in layer["shapes"]]
    points = {name: xr.Dataset({"gap": ((), 0.0)}) for name in names}
    for spread in tilt["spread"]:
        curve = np.linspace(0.0, max(tilt["spread"]), 101)
        law = [moved_attention(c, tilt["width"]) for c in curve]
        points[f"tilt spread={spread}"] = xr.Dataset(
            {
                "total_variation": ((), moved_attention(spread, tilt["width"])),
                "curve": ("curve_spread", law),
            },
            coords={"curve_spread": curve},
        )
    return points


def moved_attention(spread: float, width: int, nodes: int = 4001) -> float:
    """Total variation between softmax and plain Gaussian weights as n → ∞.

    A key of norm r and uniform direction carries the mean softmax weight
    ``A(r) ∝ (r‖q‖/s)^{1−d/2} I_{d/2−1}(r‖q‖/s)``, and the two weights differ by a function of r
    alone, so with ``p(r) ∝ A(r)`` under the law of norms::

        TV = ½ E_p |1 − e^{−r²/2s} / E_p e^{−r²/2s}|

    Here ‖q‖ = √d_k, s = √d_k, and norms as in ``simulate.key_tilt``. (von Mises–Fisher normalising
    constant: Mardia & Jupp 2000, eq. 9.3.4.)
    """
    u = np.sqrt(3.0) * ((2 * np.arange(nodes) + 1) / nodes - 1)  # midpoint rule
    r = np.sqrt(width / (1 + spread**2)) * (1 + spread * u)
    z = r  # ‖q‖/s = 1
    log_a = (1 - width / 2) * np.log(z) + np.log(ive(width / 2 - 1, z)) + z
    p = np.exp(log_a - log_a.max())
    p /= p.sum()
    tilt = np.exp(-(r**2) / (2 * np.sqrt(width)))
    return float(0.5 * np.sum(p * np.abs(1 - tilt / np.sum(p * tilt))))
