"""What weights alone say of heads: overlaps of key subspaces and sizes of matrices; and chance."""

import numpy as np
import xarray as xr

from sims.inspect.geometry import form_spectrum, frames_of, overlaps, projection_kernel
from sims.study.experiment import Experiment

from .problems import trained


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Each model's ``subspaces`` (layer, head, head2), ``matrices`` (layer, head), and ``random``.

    Subspaces overlap by ``‖U_hᵀU_g‖²/√(r_h r_g)``, and ``matrices`` is ``‖W_V W_O‖``; ``random``
    (layer, head, head2) are overlaps of a predictor that knows nothing.
    """
    law, models = experiment.spec.law, {}
    for place, name in enumerate(law["checkpoints"]):
        model = trained(law, name)
        kernels, sizes = [], []
        for layer in model.layers:
            frames, ranks = frames_of(layer.matrices.key)
            kernels.append(projection_kernel(overlaps(frames), ranks))
            values = form_spectrum(layer.matrices.value, layer.matrices.output.swapaxes(1, 2))
            sizes.append(np.linalg.norm(values, axis=1))
        rng = np.random.default_rng([experiment.simulation.seed, place])
        chance = rng.uniform(size=np.shape(kernels))
        models[name] = xr.Dataset(
            {
                "subspaces": (("layer", "head", "head2"), np.array(kernels)),
                "matrices": (("layer", "head"), np.array(sizes)),
                "random": (("layer", "head", "head2"), chance + chance.swapaxes(1, 2)),
                "module": ("layer", [layer.module for layer in model.layers]),
            }
        )
    return models
