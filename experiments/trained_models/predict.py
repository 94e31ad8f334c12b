"""Predictors from weights alone: overlaps of key subspaces and sizes of matrices."""

import numpy as np
import xarray as xr

from sims.inspect.geometry import form_spectrum, subspaces

from .problems import Law, read_model


def overlaps_of(law: Law, name: str) -> xr.Dataset:
    """A model's ``subspaces`` (layer, head, head2) and ``matrices`` (layer, head).

    Subspaces overlap by ``‖U_hᵀU_g‖²/√(r_h r_g)``, and ``matrices`` is ``‖W_V W_O‖``; ``cosines``
    (layer, head, head2, angle) are those of the principal angles of key subspaces.
    """
    model = read_model(law, name)
    angles, kernels, sizes = [], [], []
    for layer in model.layers:
        cosines, kernel, _ = subspaces(layer.matrices.key)
        angles.append(cosines)
        kernels.append(kernel)
        values = form_spectrum(layer.matrices.value, layer.matrices.output.swapaxes(1, 2))
        sizes.append(np.linalg.norm(values, axis=1))
    pair = ("layer", "head", "head2")
    return xr.Dataset(
        {
            "cosines": ((*pair, "angle"), np.array(angles)),
            "subspaces": (pair, np.array(kernels)),
            "matrices": (pair[:2], np.array(sizes)),
            "module": ("layer", [layer.module for layer in model.layers]),
        }
    )
