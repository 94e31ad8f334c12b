"""What theory says: how much attention a missing tilt moves. Elsewhere it says that gaps are 0."""

import numpy as np
import xarray as xr
from scipy.special import ive

from sims.study.experiment import Experiment


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """The law at each spread of key norms, and its curve, under the names of those points alone."""
    tilt = experiment.settings["tilt"]
    spreads = np.linspace(0.0, max(tilt["spread"]), 101)
    curve = [moved_attention(spread, tilt["width"]) for spread in spreads]
    return {
        f"tilt spread={spread}": xr.Dataset(
            {
                "total_variation": moved_attention(spread, tilt["width"]),
                "curve": ("curve_spread", curve),
            },
            {"curve_spread": spreads},
        )
        for spread in tilt["spread"]
    }


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
