"""The driver with plain Python: replicates and whole batches."""

import jax
import numpy as np
import pytest
import xarray as xr

from sims.montecarlo import HostBatches, HostReplicates, replicate_key, root_key, run
from tests.by_hand import refusals, refused


def median(draw, shared, batch):
    """A median is no function that JAX was asked for; both generators are used."""
    noise = draw.rng().normal(size=5) + float(jax.random.uniform(draw.key))
    return {"median": np.median(noise) + shared, "centred": noise[:2] - batch}


def centres(draw):
    return draw.rng().normal(size=draw.replicates)


def expected(seed, batches, replicates):
    out = []
    for b in range(batches):
        centre = np.random.default_rng([seed, b]).normal(size=replicates)
        for r in range(replicates):
            u = float(jax.random.uniform(replicate_key(root_key(seed), b, r)))
            noise = np.random.default_rng([seed, b, r]).normal(size=5) + u
            out.append([np.median(noise) + 2.0, *(noise[:2] - centre[r])])
    return np.reshape(out, (batches, replicates, 3))


def test_host_replicates():
    options = {"per_batch": centres, "rows": True, "constants": 2.0, "dims": {"centred": "c"}}
    sampler = HostReplicates(median, **options)
    data = run(sampler, 3, replicates_per_batch=4, batches=3)
    values = expected(3, 3, 4)
    np.testing.assert_allclose(data["median"], values[..., 0].mean(1), rtol=1e-12)
    np.testing.assert_allclose(data["centred"], values[..., 1:].mean(1), rtol=1e-10)
    error = values[..., 0].mean(1).std(ddof=1) / 3**0.5
    assert float(data["median_mcse"]) == pytest.approx(error, rel=1e-12)
    short = run(sampler, 3, replicates_per_batch=4, batches=2)
    again = run(
        HostReplicates(median, **options), 3, replicates_per_batch=4, batches=3, resume=short
    )
    xr.testing.assert_identical(again, data)
    stacked = HostReplicates(median, reduce="stack", **options)
    kept = run(stacked, 3, replicates_per_batch=4, batches=3)
    np.testing.assert_allclose(kept["centred"], values[..., 1:], rtol=1e-10)
    np.testing.assert_allclose(kept["median_mcse"], data["median_mcse"], rtol=1e-12)


def test_host_batches():
    """Vectorised over replicates by the user; the stream is in both generators."""
    calls = []

    def spread(draw, replicates, shared):
        calls.append(draw.batch)
        return {"variance": draw.rng().normal(size=(replicates, 2)).var(0, ddof=1) * shared}

    sampler = HostBatches(spread, constants=1.5, dims={"variance": ["c"]})
    data = run(sampler, 3, stream=(6, 1), replicates_per_batch=8, batches=3)
    for b in range(3):
        normal = np.random.default_rng([3, 6, 1, b]).normal(size=(8, 2))
        np.testing.assert_allclose(data["variance"][b], normal.var(0, ddof=1) * 1.5)
    assert calls == [0, 1, 2]
    assert data.attrs["device_count"] == 1  # though the tests have several
    precise = run(sampler, 3, replicates_per_batch=8, batches=2, rel_mcse=0.2)
    assert precise.attrs["stopped"] == "precision"
    assert len(calls) == 3 + precise.sizes["batch"]  # none was computed in vain


def test_keys_of_batches():
    words = []
    sampler = HostBatches(
        lambda draw, replicates, shared: words.append(draw.key) or {"x": np.float64(draw.batch)}
    )
    data = run(sampler, jax.random.key(4), replicates_per_batch=2, batches=2)
    assert data.attrs["seed"] == "key 0 4"
    for batch, key in enumerate(words):
        own = jax.random.fold_in(root_key(4), batch)
        assert (jax.random.key_data(key) == jax.random.key_data(own)).all()


test_bad_input_is_named = refusals(
    [
        (lambda: HostReplicates(median, reduce="last"), "reduce: got 'last'"),
        (lambda: HostBatches(lambda *_: 1.0), "batch: got 'float'"),
        (lambda: HostReplicates(lambda *_: 1.0), "replicate: got 'float'"),
    ],
    lambda sampler: run(sampler(), 0, replicates_per_batch=2, batches=2),
)


def test_numpy_cannot_draw_from_a_key():
    sampler = HostBatches(lambda draw, replicates, shared: {"x": draw.rng().normal()})
    with refused("seed: got 'key 0 4'; allowed: an integer"):
        run(sampler, jax.random.key(4), replicates_per_batch=2, batches=2)
