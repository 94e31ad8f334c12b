"""β = 1 and 2; the matched rule loses 2 % or 20 %, softmax 50 % or 1 %."""

from dataclasses import replace

import numpy as np
import xarray as xr

from tests.experiments.planted.made import assigned, batches

TWO = np.array([1, 2])
MORE = np.array([1, 1.2])[:, None, None, None]


def plant(results):
    """β = 1 and 2; the matched rule loses 2 % or 20 %, softmax 50 % or 1 %."""
    law = results.predictions["law"]
    ratio, loss = law["ratio"].values, {"softmax": [0.5, 0.01], "sparsemax": [0.02, 0.3]}
    loss |= {"1.5-entmax": [0.2, 0.2], "top-k": [0.3, 0.1]}
    loss["softmax, log n"] = [0.3, 0.05]
    rules = law["rule"].values
    losses = 1 + np.array([loss.get(name, [0.3, 0.3]) for name in rules]).T
    # At its best temperature softmax errs more than all others, or less.
    least = np.where(rules == "softmax", [[1 / 0.9], [1 / 1.1]], 1)
    at_context = least * losses
    best = np.ones((*at_context.shape, len(ratio)))
    made = {"kept": best * at_context[..., None], "best": best * least[..., None], "known": best}
    made |= {"tuned": best * ratio ** (-1 / 3), "smoothness": [1, 2], "power": [2, 2]}
    theory = {"law": assigned(law, made | {"width": [1, 1]})}
    three = np.stack([at_context, least, at_context * TWO[:, None]], -1) * MORE[:, 0]
    dims = ("batch", "problem", "rule", "temperature")
    names = {"rule": rules, "temperature": ["kept", "best", "learned"]}
    estimates = {"tasks": xr.Dataset({"error": (dims, batches(three))}, names)}
    return replace(results, estimates=estimates, predictions=theory), {
        "matched stays": [0.03, -0.15],
        "matched stays, learned": [0.03, -1.35],
        "softmax falls behind": [0.45, -0.04],
        "1.5-entmax against softmax": [[1 - 1.2 * 0.9 / 1.5], [1 - 1.2 * 1.1 / 1.01]],
        "1.5-entmax against top-k": [[1 - 1.2 / 1.3], [1 - 1.2 / 1.1]],
        "1.5-entmax against softmax, log n": [[1 - 1.2 / 1.3], [1 - 1.2 / 1.05]],
        "re-tuned": [[0.1], [-0.1]],
        # 2(β − ν)/(ν(2β + 1)) is −1/3 and 0 for ν = 2.
        "exponent of the temperature": [0.1, 0.1 - 1 / 3],
    }
