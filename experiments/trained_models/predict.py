"""What weights alone say of heads: overlaps of key subspaces and sizes of matrices; and chance."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from sims.inspect.geometry import form_spectrum, frames_of, overlaps, projection_kernel

from .problems import read_model


def overlaps_of(law: Mapping[str, Any], name: str, seed: list[int]) -> xr.Dataset:
    """A model's ``subspaces`` (layer, head, head2), ``matrices`` (layer, head), and ``random``.

    ``cosines`` (layer, head, head2, angle) are those of the principal angles of key subspaces.
    Subspaces overlap by ``‖U_hᵀU_g‖²/√(r_h r_g)``, and ``matrices`` is ``‖W_V W_O‖``; ``random``
    (layer, head, head2) are overlaps of a predictor that knows nothing.
    """
    model = read_model(law, name)
    angles, kernels, sizes = [], [], []
    for layer in model.layers:
        frames, ranks = frames_of(layer.matrices.key)
        cosines = overlaps(frames)
        angles.append(cosines)
        kernels.append(projection_kernel(cosines, ranks))
        values = form_spectrum(layer.matrices.value, layer.matrices.output.swapaxes(1, 2))
        sizes.append(np.linalg.norm(values, axis=1))
    chance = np.random.default_rng(seed).uniform(size=np.shape(kernels))
    pair = ("layer", "head", "head2")
    return xr.Dataset(
        {
            "cosines": ((*pair, "angle"), np.array(angles)),
            "subspaces": (pair, np.array(kernels)),
            "matrices": (pair[:2], np.array(sizes)),
            "random": (pair, chance + chance.swapaxes(1, 2)),
            "module": ("layer", [layer.module for layer in model.layers]),
        }
    )
