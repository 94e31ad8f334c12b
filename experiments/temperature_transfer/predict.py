"""First-order errors and attended keys of the same problems, out to contexts of millions."""

import numpy as np
import xarray as xr

from sims.study.experiment import Experiment
from sims.theory.neighbours.context import Problems, Table, score_attended, tables

from .problems import ENTMAX, SMOOTHNESS, WEIGHED, Settings, drawn, parameters

KEYS = ("1/n_eff", "attended")
"""What ``keys`` holds."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """A dataset a head width, and ``unequal norms``; a group of problems for every batch.

    At theory's own temperatures and sizes ``mse``, and ``keys``: the mean of 1/n_eff and that of
    attended keys; for top-k both end in ``_top_k``. Of keys with unequal norms: attended keys
    alone, at the simulated temperatures and sizes.
    """
    settings, groups = experiment.settings, experiment.simulation.batches
    found = {f"d_k={width}": errors(settings, width, groups) for width in settings["widths"]}
    return found | {"unequal norms": unequal(settings, groups)}


def errors(settings: Settings, width: int, groups: int) -> xr.Dataset:
    """Group means at every smoothness, rule, parameter and size."""
    radii = np.geomspace(*settings["radii"][width])
    grids, sizes = parameters(settings, "theory", width), np.array(settings["reach"], float)
    families = drawn(settings, width, groups * settings["problems_per_batch"])
    every = [tables(Problems(*family), radii) for family in families]
    data = {}
    for rules, step, end in ((WEIGHED, "step", ""), (("top-k",), "count", "_top_k")):
        made = [
            at_grid(every, rule, sizes, grids[rule], settings["noise_sd"], groups) for rule in rules
        ]
        errors_of, keys_of = (np.stack(part, axis=-1) for part in zip(*made, strict=True))
        errors_of, keys_of = (v if end == "" else v[..., 0] for v in (errors_of, keys_of))
        own = ("weighed",) if end == "" else ()
        data[f"mse{end}"] = (("group", "smoothness", step, "size", *own), errors_of)
        data[f"keys{end}"] = (("of", "group", step, "size", *own), keys_of)
    return xr.Dataset(
        data,
        {"smoothness": list(SMOOTHNESS), "weighed": list(WEIGHED), "of": list(KEYS), "size": sizes},
    )


def at_grid(
    families: list[dict[str, Table]],
    rule: str,
    sizes: np.ndarray,
    grid: np.ndarray,
    noise_sd: float,
    groups: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Errors (group, smoothness, step, size), and the mean of 1/n_eff and of attended keys."""
    n, parameter = np.meshgrid(sizes, grid)
    # First order is not asked for k beyond a good half of the keys.
    outside = np.where(parameter > 0.7 * n, np.nan, 1.0) if rule == "top-k" else 1.0
    within = np.minimum(parameter, n) if rule == "top-k" else parameter
    found = [tables_of[rule].errors(n, within, noise_sd) for tables_of in families]
    mse = grouped(np.concatenate([one.mse for one in found]), groups) * outside
    # What a head attends to does not depend on the target.
    keys = grouped(np.stack([1 / found[0].n_eff, found[0].attended]), groups)
    return np.moveaxis(mse, 0, 1), keys


def grouped(values: np.ndarray, groups: int) -> np.ndarray:
    """Means over the problems of each group, (B, G, *S), of values (B, P, *S)."""
    return values.reshape(len(values), groups, -1, *values.shape[2:]).mean(axis=2)


def unequal(settings: Settings, groups: int) -> xr.Dataset:
    """Attended keys of dot products with N(0, I) keys, (group, entmax, step, size)."""
    width, sizes = settings["unequal"], settings["sizes"]
    norms = np.linalg.norm(
        drawn(settings, width, groups * settings["problems_per_batch"])[0].queries, axis=1
    )
    grids = parameters(settings, "dot", width)
    # A smooth curve of the norm: a few norms, and lines between them.
    places = np.geomspace(norms.min(), norms.max(), settings["norms"])

    def attended(n: int, temperature: float, nu: float) -> np.ndarray:
        law = [score_attended(n, place / temperature, nu) for place in places]
        return np.interp(np.log(norms), np.log(places), law).reshape(groups, -1).mean(1)

    values = np.array(
        [[[attended(n, s, nu) for n in sizes] for s in grids[rule]] for rule, nu in ENTMAX.items()]
    )
    return xr.Dataset(
        {"unequal": (("group", "entmax", "step", "near"), np.moveaxis(values, -1, 0))},
        {"entmax": list(ENTMAX), "near": np.array(sizes, float)},
    )
