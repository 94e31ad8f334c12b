"""Adding heads on drawn problems: every doubling and every split, each by its own numbers."""

import numpy as np
import pytest
import xarray as xr

from sims.study.experiment import load_experiment
from sims.terms import PAIRS
from tests.experiments.by_hand import drawn, is_ratio_of
from tests.experiments.helpers import results_of

BATCHES, N = 24, 128
COUNT, WIDTH, KIND = "heads.count", "heads.width", "design.correlation"
DIVERSE, ALIGNED = 0.0, 1.0
KERNELS = ("gaussian", "softmax")


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("adding_heads")


@pytest.fixture(scope="module")
def made(experiment):
    """Results on the real grid, no two of whose points or heads have one error."""
    rng = np.random.default_rng(7)
    shared, estimates, predictions = rng.normal(size=BATCHES), {}, {}
    for index, point in enumerate(experiment.points):
        heads, count = int(point.coordinates[COUNT]), BATCHES - index % 4
        names = [f"integrated_{pair}" for pair in PAIRS]
        sizes = dict(zip(names, rng.uniform(0.5, 2, (3, heads, heads)), strict=True))
        parts = {k: s * drawn(rng, shared[:count], 1.0, s.shape) for k, s in sizes.items()}
        dims = ("head", "head2")
        estimates[point.name] = xr.Dataset({k: (("batch", *dims), v) for k, v in parts.items()})
        predictions[point.name] = xr.Dataset({k: (dims, v) for k, v in sizes.items()})
    return results_of(experiment, estimates, predictions)


@pytest.fixture(scope="module")
def found(experiment, made):
    return experiment.module("effects").effects(made)


def error(made, kernel, heads, width, kind):
    """Batches of the mean over the first heads, from the population's point of that width."""
    most = {4: 16, 8: 2, 2: 8}[width]
    sought = {"heads.kernel": kernel, COUNT: most, WIDTH: width, KIND: kind, "n": N}
    (name,) = (
        name
        for name, at in made.coordinates.items()
        if at["population"] is not None and all(at[k] == v for k, v in sought.items())
    )
    whole = sum(made.estimates[name][f"integrated_{pair}"].values for pair in PAIRS)
    return np.array([own[:heads, :heads].sum() / heads**2 for own in whole])


def is_drop(effect, first, second):
    """Whether it is by how much the second error is the smaller one, over common batches."""
    count = min(len(first), len(second))
    is_ratio_of(effect, second[:count], first[:count], 1.0, -1.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_doubling_of_drawn_heads_is_judged(made, found, kernel):
    effects = [e for e in found["doubling, drawn"] if e.at["kernel"] == kernel]
    assert [effect.label for effect in effects] == [
        "1 diverse of width 4 to 2 diverse of width 4",
        "2 diverse of width 4 to 4 diverse of width 4",
        "4 diverse of width 4 to 8 diverse of width 4",
        "8 diverse of width 4 to 16 diverse of width 4",
    ]
    for effect, few in zip(effects, (1, 2, 4, 8), strict=True):
        is_drop(effect, *(error(made, kernel, heads, 4, DIVERSE) for heads in (few, 2 * few)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_split_into_several_drawn_heads_is_judged(made, found, kernel):
    """Splits of D = 16 into 2, 4 and 8 heads, as the row says."""
    every = found["diverse against aligned, drawn"]
    effects = [effect for effect in every if effect.at["kernel"] == kernel]
    assert [effect.label for effect in effects] == [
        "2 aligned of width 8 to 2 diverse of width 8",
        "4 aligned of width 4 to 4 diverse of width 4",
        "8 aligned of width 2 to 8 diverse of width 2",
    ]
    for effect, heads in zip(effects, (2, 4, 8), strict=True):
        is_drop(effect, *(error(made, kernel, heads, 16 // heads, k) for k in (ALIGNED, DIVERSE)))
    assert len(every) == len(effects) * len(KERNELS)
