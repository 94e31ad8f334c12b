"""Random keys against Threefry in plain Python, and that none is used twice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfinv

from sims.montecarlo.draws import Draw
from sims.problem import GaussianDesign, Heads, Task, TrigonometricSeries
from sims.simulation import draw, estimate

MASK = 2**32 - 1


def threefry(key, counter):
    """Threefry-2x32 of 20 rounds (Salmon et al. 2011), by the letter of the paper."""
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = ((c + k) & MASK for c, k in zip(counter, key, strict=True))
    for turn in range(20):
        by = ((13, 15, 26, 6), (17, 29, 16, 24))[turn // 4 % 2][turn % 4]
        x = (x + y) & MASK
        y = ((y << by | y >> (32 - by)) & MASK) ^ x
        if turn % 4 == 3:
            s = turn // 4 + 1
            x, y = (x + keys[s % 3]) & MASK, (y + keys[(s + 1) % 3] + s) & MASK
    return x, y


def folded(key, *numbers):
    for number in numbers:
        key = threefry(key, (0, number))
    return key


def normals(key, count):
    """√2 erf⁻¹ of uniforms on (−1, 1) whose 52 bits are the first of 64."""
    words = (threefry(key, divmod(i, 2**32)) for i in range(count))
    unit = np.array([(x << 20 | y >> 12) for x, y in words]) / 2.0**52
    return np.sqrt(2) * erfinv(np.maximum(2 * unit - 1, np.nextafter(-1.0, 0.0)))


def task_of(dimension):
    target = TrigonometricSeries([1.0], np.zeros((1, dimension)), [0.0])
    return Task(GaussianDesign(np.eye(dimension)), target, 1.0)


def test_plain_threefry_gives_the_published_vectors():
    assert threefry((0, 0), (0, 0)) == (0x6B200159, 0x99BA4EFE)
    assert threefry((MASK, MASK), (MASK, MASK)) == (0x1CB996FC, 0xBB002BE7)
    pi = (0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3)
    assert threefry(*pi) == (0xC4923A9C, 0x483DF7A0)


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 5])
def test_a_replicates_draws_are_those_of_its_name(seed):
    """Keys X and label noise of replicate 2 of batch 300, number by number."""
    root = divmod(seed, 2**32)
    keys = Draw.from_seed(seed, (4,), 3).keys(np.array([0, 300]))
    own = folded(root, 4, 300, 2)
    assert tuple(np.asarray(jax.random.key_data(keys[1, 2]))) == own
    x, labels = draw(task_of(3), keys[1, 2], 10, jnp.float64)
    for_keys, for_labels = (folded(own, 0, i) for i in range(2))
    np.testing.assert_allclose(x, normals(for_keys, 30).reshape(10, 3), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(labels, normals(for_labels, 10), rtol=1e-9, atol=1e-12)


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
    for term in ("noise_variance", "raw_mse"):
        values = data[term].values
        assert len(np.unique(values)) == 300
        # Neighbours, and batches 256 apart: correlations of 44 pairs and more, at 5 errors.
        for lag in (1, 256):
            pair = np.corrcoef(values[:-lag], values[lag:])[0, 1]
            assert abs(pair) < 5 / np.sqrt(300 - lag)
