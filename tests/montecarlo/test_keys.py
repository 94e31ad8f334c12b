"""Random keys by NumPy's Threefry (tests/test_threefry.py), and that none is used twice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.base import threefry
from sims.montecarlo.draws import Draw
from sims.problem import GaussianDesign, Heads, Task, TrigonometricSeries
from sims.simulation import draw, estimate


def task_of(dimension):
    target = TrigonometricSeries([1.0], np.zeros((1, dimension)), [0.0])
    return Task(GaussianDesign(np.eye(dimension)), target, 1.0)


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 5])
def test_a_replicates_draws_are_those_of_its_name(seed):
    """Keys X and label noise of replicate 2 of batch 300 of a stream, number by number."""
    keys = Draw.from_seed(seed, (4,), 3).keys(np.array([0, 300]))
    own = threefry.root(seed)
    for number in (4, 300, 2):
        own = threefry.fold_in(own, number)
    np.testing.assert_array_equal(jax.random.key_data(keys[1, 2]), own)
    drawn = draw(task_of(3), keys[1, 2], 10, jnp.float64)
    for place, values in enumerate(drawn):
        key = threefry.fold_in(threefry.fold_in(own, 0), place)
        expected = threefry.normal(key, values.shape)
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)


def test_no_two_replicates_share_a_key():
    """Batch 0 against 70,000 others, more than 16 bits can number, and its own replicates."""
    keys = Draw.from_seed(11, (), 2).keys(np.arange(70_000))
    words = np.asarray(jax.random.key_data(keys)).reshape(-1, 2)
    assert len(np.unique(words, axis=0)) == len(words)


def test_no_two_batches_of_the_engine_are_alike():
    """Seen in the results: a number drawn twice would make two batches equal."""
    heads = Heads(np.eye(2)[:, :, None], "gaussian", 0.7)
    data = estimate(
        task_of(2),
        heads,
        8,
        np.zeros((1, 2)),
        5,
        replicates_per_batch=2,
        batches=300,
        precision="float64",
    )
    for term in ("noise_variance", "mse"):
        values = data[term].values
        assert len(np.unique(values)) == 300
        # Neighbours, and batches 256 apart: correlations of 44 pairs and more, at 5 errors.
        for lag in (1, 256):
            pair = np.corrcoef(values[:-lag], values[lag:])[0, 1]
            assert abs(pair) < 5 / np.sqrt(300 - lag)
