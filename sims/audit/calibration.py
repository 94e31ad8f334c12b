"""False alarms at claims that are just true or just false, and coverage of every interval.

Batches are iid and named by their number, so disjoint blocks of one long run are independent runs,
each with its own seed: hundreds of them cost one simulation.
"""

from typing import Any

import numpy as np

from sims.audit.alarms import alarms
from sims.audit.coverage import coverage
from sims.audit.problems import problem, scalars, simulated, truth
from sims.theory import predict

JUDGED = ("squared_bias", "signal_variance", "noise_variance", "mse")
PAIRED = "cross_noise_covariance"
"""With a head's noise variance it makes the correlation of two heads' noise."""


def calibrate(sizes: dict[str, int]) -> dict[str, list[dict[str, Any]]]:
    """Measure error rates.

    Args:
        sizes: ``runs`` (independent ones), ``batches`` of a run, ``replicates`` of a batch; unless
            ``own``, on the problem of the planted falsehoods, whose solution is there already.

    Returns:
        ``alarms`` (claim type, what is true, wrong verdicts, runs, most allowed) and ``coverage``
        (interval, of what, covered, runs, least and most allowed). Allowed is what the exact
        binomial law gives at 99 %, for all rows of a table together, from the stated level. A row
        ``holds`` if it is within.
    """
    runs, count = sizes["runs"], sizes["batches"]
    at = problem("line", 16) if sizes["own"] else problem()
    data = simulated(at, 21, sizes["replicates"], runs * count)
    exact = predict(*at, order="exact", rtol=1e-6) if sizes["own"] else truth()
    right = scalars(exact)
    real = {name: data[name].values.reshape(runs, count) for name in (*JUDGED, PAIRED)}
    relative = np.stack([real[n] / right[n] for n in JUDGED], axis=2)
    return {"alarms": alarms(relative), "coverage": coverage(real, right)}
