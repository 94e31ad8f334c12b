"""Every contestant of the benchmarks computes what the plain NumPy loop computes."""

import jax
import numpy as np
import pytest

from benchmarks import contestants as who
from benchmarks.problem import Work
from benchmarks.scale import exponent

WORK = Work(heads=3, width=2, dimension=6, n=50, queries=4, replicates=4)


@pytest.mark.parametrize("peer", ["torch_batched", "keops"])
def test_peers_agree_with_numpy(peer):
    """The same generator, the same draws: to rounding."""
    try:
        run = getattr(who, peer)(WORK, "float64", 2)
    except who.Missing as error:
        pytest.skip(str(error))
    expected = who.numpy_loop(WORK, "float64", 2)(3)
    at_query = np.asarray(WORK.problem()[0].target(WORK.problem()[2]))
    for found, (linear, gram) in zip(run(3), expected, strict=True):
        own, pairs = (np.asarray(x) for x in found)
        # (head, query), or (query, head, column) of which the first is m.
        own = own.T if peer == "torch_batched" else own[..., 0]
        np.testing.assert_allclose(own, linear + at_query[:, None], rtol=1e-9)
        np.testing.assert_allclose(pairs, gram, rtol=1e-9)


def test_vmap_agrees_in_law():
    """Means of g over 4000 replicates of either: 5 standard errors on 12 numbers (false: 1e-5)."""
    replicates = 4000
    linear, gram = who.plain_vmap(WORK, "float64", replicates)(0)
    loop = who.numpy_loop(WORK, "float64", replicates // 8)(1)
    at_query = np.asarray(WORK.problem()[0].target(WORK.problem()[2]))
    own = np.asarray(linear)
    others = np.array([one for one, _ in loop]) + at_query[:, None]
    error = np.hypot(own.std(0) / replicates**0.5, others.std(0) / (replicates / 8) ** 0.5)
    assert np.all(np.abs(own.mean(0) - others.mean(0)) < 5 * error)
    assert np.all(np.isfinite(jax.device_get(gram)))


def test_exponent_of_an_exact_power():
    slope, half = exponent([1, 10, 100], [2.0, 20.0, 200.0])
    assert slope == pytest.approx(1)
    assert half < 1e-6
