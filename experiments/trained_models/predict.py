"""Predictors from weights alone: overlaps of key subspaces, sizes and alignment of maps."""

import numpy as np
import xarray as xr

from sims.inspect.geometry import subspaces

from .problems import Law, read_model


def overlaps_of(law: Law, name: str) -> xr.Dataset:
    """A model's ``subspaces`` and ``alignment`` (layer, head, head2), ``matrices`` (layer, head).

    Subspaces overlap by ``‖U_hᵀU_g‖²/√(r_h r_g)``; ``matrices`` is ``‖W_V W_O‖``, and alignment
    the cosine of two heads' ``W_V W_O`` as vectors; ``cosines`` (layer, head, head2, angle) are
    those of the principal angles of key subspaces. Maps include the gain of a norm before them, and
    heads that share a key head have its keys and values.
    """
    model = read_model(law, name)
    angles, kernels, sizes, aligned = [], [], [], []
    for layer in model.layers:
        cosines, kernel, _ = subspaces(layer.folded.key[layer.key_head])
        angles.append(cosines)
        kernels.append(kernel)
        value, output = layer.folded.value[layer.key_head], layer.matrices.output
        product = np.einsum("hdi,gdj->hgij", value, value, optimize=True)
        product *= np.einsum("hie,gje->hgij", output, output, optimize=True)
        inner = product.sum((2, 3))
        size = np.sqrt(np.diagonal(inner))
        sizes.append(size)
        aligned.append(inner / np.outer(size, size))
    pair = ("layer", "head", "head2")
    return xr.Dataset(
        {
            "cosines": ((*pair, "angle"), np.array(angles)),
            "subspaces": (pair, np.array(kernels)),
            "alignment": (pair, np.array(aligned)),
            "matrices": (pair[:2], np.array(sizes)),
            "module": ("layer", [layer.module for layer in model.layers]),
        }
    )
