"""What the laws of subset sums say: typical errors, failures, needed items, best scales."""

import numpy as np
import xarray as xr

from sims.study.experiment import Experiment
from sims.theory.neighbours import subset_sums as sums


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Laws averaged over drawn items and entries, under the names of the points they are of."""
    settings = experiment.settings
    rng = np.random.default_rng(settings["theory"]["seed"])
    draws, many = settings["theory"]["draws"], settings["theory"]["law_draws"]
    found: dict[str, xr.Dataset] = {}
    own = settings["curves"]
    for d in own["d"]:
        for target in own["targets"] if d == own["block_d"] else ["within"]:
            goal = entries(rng, target, d, draws)
            medians = [
                sums.median_error(sums.products(rng, len(goal), items), goal)
                for items in own["items"]
            ]
            for blocks in own["blocks"] if target == "within" and d == own["block_d"] else [1]:
                found[f"curve d={d} {target} B={blocks}"] = xr.Dataset(
                    {"median_entry": ("per_entry", medians), "decay_rate": sums.decay_rate(d)},
                    {"per_entry": own["items"]},
                )
    own = settings["law"]
    for items in own["items"]:
        pool = sums.products(rng, many, items)
        for entry in own["entries"]:
            eps = np.array(own["multiples"]) * 2.0**-items
            miss = sums.failure_probability(pool, np.full(many, entry), eps)
            found[f"law n'={items} w={entry:g}"] = xr.Dataset(
                {"missed": ("multiple", miss)}, {"multiple": own["multiples"]}
            )
    own = settings["many"]
    goal = rng.uniform(-own["reach"], own["reach"], draws)
    logs = [
        sums.log_error(sums.products(rng, draws, items), goal, own["counts"])
        for items in own["items"]
    ]
    found["many"] = xr.Dataset(
        {"log_error": (("searched", "count"), np.array(logs))},
        {"searched": own["items"], "count": own["counts"]},
    )
    own = settings["scales"]
    for width in own["widths"]:
        items = width // own["d"]
        for entry in own["entries"]:
            found[f"scale n_K={width} w={entry:g}"] = xr.Dataset(
                {
                    "best": sums.best_weight_scale(entry, own["d"]),
                    "item_scale": sums.best_item_scale(entry, items),
                }
            )
    return found


def entries(rng: np.random.Generator, target: str, d: int, draws: int) -> np.ndarray:
    """Entries of a target's merged matrices, half of W_QK and half of W_VO.

    An entry of a random rotation is a coordinate of a point on the unit sphere.
    """
    if target == "products":
        return np.asarray(sums.products(rng, draws, 8).sum(-1))
    if target == "within":
        first, second = rng.standard_normal((2, draws, d, d))
        sizes = [np.linalg.svd(m, compute_uv=False)[:, 0] for m in (first, second)]
        entry = (first[:, 0] * second[:, :, 0]).sum(-1) / (sizes[0] * sizes[1])
        entry *= rng.uniform(0, 1, draws) * rng.uniform(0, 1, draws)
    else:
        point = rng.standard_normal((draws, d))
        entry = point[:, 0] / np.linalg.norm(point, axis=1)
    entry[::2] /= np.sqrt(d)
    return np.asarray(entry / 100 if target == "tiny" else entry)
