"""What experiments make of results, against a few lines of NumPy on made-up numbers.

Every test states what a family of effects is *of*: which points, which ratio or difference, with
which error and which bound. Batches of two points differ in number, and the first ones share their
draws, so that an error that is not that of the pair, or of other batches, is another number.
"""

import numpy as np
import pytest
import xarray as xr

from tests.experiments.by_hand import (
    drawn,
    families,
    is_mean_of,
    is_ratio_of,
)

BATCHES = 24


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture
def shared(rng):
    return rng.normal(size=BATCHES)


def test_unification(rng, shared):
    """v and ρv over theory's, with its bounds; pools over ``c + (v − c)/M``."""
    agents = np.array([1, 2, 4])
    v, c = drawn(rng, shared, 1.5), drawn(rng, shared, 0.5)
    names, axes = ("pooled", "unequal", "error"), ("batch", "agents")
    pools = {k: (axes, drawn(rng, rng.normal(size=BATCHES), 0.8, (3,))) for k in names}
    estimates = {
        "heads": xr.Dataset(pools, {"agents": agents}),
        "heads, measured": xr.Dataset({"variance": ("batch", v), "covariance": ("batch", c)}),
    }
    law = {"variance": 1.4, "variance_error": 0.007, "covariance": 0.4, "covariance_error": 0.004}
    heads = {"name": "heads", "kind": "heads"}
    same = dict.fromkeys(("name", "plain", "changed"), "heads")
    settings = {"systems": [heads], "mechanisms": [], "evaporation": same, "unequal": 0.5}
    predictions = {"heads, measured": xr.Dataset(law)}
    found = families("unification", estimates, predictions, settings=settings)
    variance, covariance = found["measured over theory"]
    is_mean_of(variance, v / 1.4 - 1, bound=0.005)
    is_mean_of(covariance, c / 0.4 - 1, bound=0.01)
    assert len(found["pooled over the law"]) == 2
    for effect, size, pooled in zip(
        found["pooled over the law"], (2, 4), pools["pooled"][1].T[1:], strict=True
    ):
        is_ratio_of(effect, pooled, c + (v - c) / size, 1.0)
    # Each weight is half the next: 1/7, 2/7 and 4/7 for three, so 5/9 for two.
    first = found["unequal weights over the law"][0]
    is_ratio_of(first, pools["unequal"][1][:, 1], c + (v - c) * 5 / 9, 1.0)
    # An ant's pheromone halves at the next: the same weights. Here it also follows another kind.
    ants = {"name": "ants", "kind": "ants", "evaporation": 0.5}
    switch = {"name": "ants for heads", "plain": "heads", "changed": "ants"}
    settings |= {"systems": [heads, ants], "mechanisms": [switch], "evaporation": switch}
    late = drawn(rng, shared, 0.9)
    errors = {k: drawn(rng, shared, 0.7, (3,)) for k in ("heads", "ants")}
    estimates |= {
        k: estimates["heads"].assign(error=(("batch", "agents"), v)) for k, v in errors.items()
    }
    estimates |= {
        "ants, measured": estimates["heads, measured"].assign(covariance=("batch", late)),
    }
    predictions |= {"ants, measured": xr.Dataset({"variance": np.nan})}
    found = families("unification", estimates, predictions, settings=settings)
    of_ants = found["pooled over the law"][2]
    is_ratio_of(of_ants, pools["pooled"][1][:, 1], late + (v - late) * 5 / 9, 1.0)
    # What a mechanism is worth, it is worth to the pool of all.
    (fall,), (rise,) = found["fall of the error"], found["rise of the error"]
    assert fall.at == {"mechanism": "ants for heads"}
    is_ratio_of(fall, errors["ants"][:, -1], errors["heads"][:, -1], 1.0, -1.0)
    is_ratio_of(rise, errors["ants"][:, -1], errors["heads"][:, -1], 1.0)
    (fall,), (rise,) = found["fall of the correlation"], found["rise of the correlation"]
    assert fall.value == pytest.approx(c.mean() / v.mean() - late.mean() / v.mean())
    by_hand = (c - late - (c.mean() - late.mean()) * v / v.mean()) / v.mean()
    assert fall.error == pytest.approx(np.std(by_hand, ddof=1) / np.sqrt(BATCHES))
    assert (rise.value, rise.error) == (-fall.value, fall.error)
