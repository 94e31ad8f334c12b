"""All fall at the stated rate; or 0.15 faster, and ever more heads by a logarithm."""

from dataclasses import replace

import numpy as np
import xarray as xr

from tests.experiments.planted.made import assigned, batches


def plant(results):
    """All fall at the stated rate; or 0.15 faster, and ever more heads by a logarithm."""
    law, stated, heads = results.predictions["law"], np.array([-0.5, -0.6]), np.array([2, 8])
    n = law["n"].values
    one = n ** (stated - [0, 0.15])[:, None]
    averaged = one * (heads**stated * [1, 1.2])[:, None]
    error = np.stack([one, averaged, [one[0], np.log(n) ** (25 * stated[1])]], 1)
    law = assigned(law, {"error": error, "exponent": stated, "heads": heads})
    sample = error[:, :2, :3] * np.array([1, 1.3])[:, None, None]
    sample[:, 1, 0] *= 2  # averaged heads fall faster
    estimates = {
        f"n = {size:.0f}": xr.Dataset(
            {"mse": (("batch", "pools"), batches(sample[..., k].ravel()))}
        )
        for k, size in enumerate(n[:3])
    }
    expected = {
        "far, one head": [0.1, -0.05],
        "far, averaged heads": [0.1, -0.05],
        "far, ever more heads": [0.1, -0.1],
        "common, one head": [0.1, -0.05],
        "roads": [0, 0.3],
    }
    return replace(results, estimates=estimates, predictions={"law": law}), expected
