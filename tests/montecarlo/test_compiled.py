"""The driver with replicates traced by JAX: names of draws, reductions, resumption, stopping."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from sims.montecarlo import Fold, Replicates, replicate_key, root_key, run
from tests.by_hand import refusals, refused

ONE = jax.devices()[:1]


def rank_of_tokens(key, temperature, batch, *, layers):
    """Effective rank of a token matrix after each of L random attention layers."""
    tokens = jax.random.normal(key, (8, 5))

    def layer(tokens, key):
        query, value = jax.random.normal(key, (2, 5, 5)) / 5**0.5
        weights = jax.nn.softmax(tokens @ query @ tokens.T / temperature, axis=1)
        tokens = weights @ tokens @ value
        spectrum = jnp.linalg.svd(tokens, compute_uv=False) ** 2
        return tokens, jnp.sum(spectrum) ** 2 / jnp.sum(spectrum**2)

    return {"rank": jax.lax.scan(layer, tokens, jax.random.split(key, layers))[1]}


RANK = Replicates(
    partial(rank_of_tokens, layers=3),
    constants=1.5,
    dims={"rank": "layer"},
    coords={"layer": [1, 2, 3]},
)


def test_rank_of_tokens_after_random_attention_layers():
    """Named draws, MCSE, resumption and stopping, from a function of a dozen lines."""
    data = run(RANK, 7, replicates_per_batch=4, batches=5)
    root, rank = root_key(7), jax.jit(partial(rank_of_tokens, layers=3))
    for batch in range(5):
        each = [rank(replicate_key(root, batch, r), 1.5, None)["rank"] for r in range(4)]
        np.testing.assert_allclose(data["rank"][batch], np.mean(each, 0), rtol=1e-10)
    np.testing.assert_allclose(
        data["rank_mcse"], data["rank"].values.std(0, ddof=1) / 5**0.5, rtol=1e-12
    )
    assert data["rank"].dims == ("batch", "layer")
    assert float(data["rank"].sel(layer=3).mean()) < float(data["rank"].sel(layer=1).mean())
    short = run(RANK, 7, replicates_per_batch=4, batches=2)
    again = run(RANK, 7, replicates_per_batch=4, batches=5, resume=short)
    xr.testing.assert_identical(again, data)
    precise = run(RANK, 7, replicates_per_batch=4, batches=2, rel_mcse=0.02)
    assert precise.attrs["stopped"] == "precision"
    count = precise.sizes["batch"]
    assert count % 8 == 0
    for look in range(8, count + 1, 8):
        means = precise["rank"][:look]
        enough = bool((means.std("batch", ddof=1) / look**0.5 <= 0.02 * means.mean("batch")).all())
        assert enough == (look == count)
    onward = run(RANK, 7, replicates_per_batch=4, batches=2, rel_mcse=0.02, resume=precise)
    assert onward.sizes["batch"] == count
    alone = run(RANK, 7, replicates_per_batch=4, batches=2, rel_mcse=0.02, devices=ONE)
    assert alone.sizes["batch"] == count
    np.testing.assert_allclose(alone["rank"], precise["rank"], rtol=1e-12)
    limited = run(RANK, 7, replicates_per_batch=4, rel_mcse=1e-9, batches=2, max_batches=9)
    assert (limited.attrs["stopped"], limited.sizes["batch"]) == ("limit", 9)


def draw_uniform(key, shared, batch):
    return {"u": jax.random.uniform(key, (2,)) + shared + batch["shift"]}


def shifts(draw):
    return {"shift": draw.rng().normal(size=(draw.replicates, 2))}


SHIFTED = Replicates(draw_uniform, constants=3.0, per_batch=shifts, rows=True, dims={"u": ["c"]})


def uniforms(seed, batches, replicates, stream=()):
    """The values of SHIFTED, (batch, replicate, c), by hand."""
    root = root_key(seed)
    for number in stream:
        root = jax.random.fold_in(root, number)
    out = np.empty((batches, replicates, 2))
    for b in range(batches):
        shift = np.random.default_rng([seed, *stream, b]).normal(size=(replicates, 2))
        for r in range(replicates):
            out[b, r] = 3 + shift[r] + jax.random.uniform(replicate_key(root, b, r), (2,))
    return out


@pytest.mark.parametrize("stream", [(), (2,), (4, 1)])
def test_draws_of_batches_and_replicates_are_named(stream):
    data = run(SHIFTED, 5, replicates_per_batch=3, batches=3, stream=stream)
    expected = uniforms(5, 3, 3, stream)
    np.testing.assert_allclose(data["u"], expected.mean(1), rtol=1e-12)
    assert data.attrs.get("stream", []) == list(stream)


def test_stack_keeps_replicates():
    stacked = replace(SHIFTED, reduce="stack")
    data = run(stacked, 5, replicates_per_batch=3, batches=4)
    expected = uniforms(5, 4, 3)
    assert data["u"].dims == ("batch", "replicate", "c")
    np.testing.assert_allclose(data["u"], expected, rtol=1e-12)
    error = expected.mean(1).std(0, ddof=1) / 2
    np.testing.assert_allclose(data["u_mcse"], error, rtol=1e-10)
    short = run(stacked, 5, replicates_per_batch=3, batches=2)
    xr.testing.assert_identical(
        run(stacked, 5, replicates_per_batch=3, batches=4, resume=short), data
    )


VARIANCE = Fold(
    lambda shared: (jnp.zeros(2), jnp.zeros(2)),
    lambda carry, value, count: (
        carry[0] + (value["u"] - carry[0]) / count,
        carry[1] + (value["u"] - carry[0]) ** 2 * (count - 1) / count,
    ),
    lambda carry, replicates: {"variance": carry[1] / (replicates - 1)},
)


@pytest.mark.parametrize("at_once", [None, 2])
def test_fold(at_once):
    folded = replace(SHIFTED, reduce=VARIANCE, dims={"variance": ["c"]}, at_once=at_once)
    data = run(folded, 5, replicates_per_batch=4, batches=2)
    np.testing.assert_allclose(data["variance"], uniforms(5, 2, 4).var(1, ddof=1), rtol=1e-10)


@pytest.mark.parametrize(("at_once", "devices"), [(None, ONE), (3, None)])
def test_numbers_do_not_depend_on_how(at_once, devices):
    expected = run(SHIFTED, 5, replicates_per_batch=4, batches=5)
    sampler = replace(SHIFTED, at_once=at_once)
    short = run(sampler, 5, replicates_per_batch=4, batches=2, devices=devices)
    again = run(SHIFTED, 5, replicates_per_batch=4, batches=5, resume=short)
    np.testing.assert_allclose(again["u"], expected["u"], rtol=1e-13)


def power(key, shared, batch, *, exponent):
    return {"x": jax.random.normal(key) ** exponent}


def test_one_compilation_for_equal_arguments_and_all_constants(caplog):
    for exponent, scale, count in ((2, 1.0, 1), (2, 5.0, 0), (3, 5.0, 1)):
        sampler = Replicates(partial(power, exponent=exponent), constants=scale)
        caplog.clear()
        with jax.log_compiles():
            run(sampler, 0, replicates_per_batch=2, batches=2)
        assert caplog.text.count("Compiling jit(run_batches)") == count


def scaled(factor):
    return Replicates(lambda key, shared, batch: {"x": factor * jax.random.normal(key)})


def test_another_function_constant_seed_stream_or_size_is_not_resumed():
    sizes = {"replicates_per_batch": 2, "batches": 2}
    done = run(scaled(1.0), 0, **sizes)
    more = {"replicates_per_batch": 2, "batches": 3, "resume": done}
    assert run(scaled(1.0), 0, **more).sizes["batch"] == 3
    for sampler, seed, options in (
        (scaled(2.0), 0, more),
        (scaled(1.0), 1, more),
        (scaled(1.0), 0, more | {"stream": (1,)}),
        (scaled(1.0), 0, more | {"replicates_per_batch": 3}),
    ):
        with refused("resume: got"):
            run(sampler, seed, **options)


def test_what_cannot_be_identified_runs_but_is_not_resumed():
    opaque = memoryview(b"12")

    def replicate(key, shared, batch):
        return {"x": jax.random.normal(key) * len(opaque)}

    sampler = Replicates(replicate)
    done = run(sampler, 0, replicates_per_batch=2, batches=2)
    with refused("identity: got 'memoryview'"):
        run(sampler, 0, replicates_per_batch=2, batches=3, resume=done)


def test_negligible_outputs_do_not_hold_up_stopping():
    def replicate(key, shared, batch):
        small, large = jax.random.normal(key, (2,))
        return {"x": jnp.stack([1e-4 * small, 10 + large, jnp.nan])}

    sampler = Replicates(replicate, dims={"x": ["part"]})
    options = {"replicates_per_batch": 4, "batches": 2, "rel_mcse": 0.1, "max_batches": 16}
    assert run(sampler, 0, **options).attrs["stopped"] == "limit"
    loose = run(sampler, 0, **options, negligible=1e-3)
    assert (loose.attrs["stopped"], loose.sizes["batch"]) == ("precision", 8)


def broken(key, shared, batch):
    """As many NaN entries of three as asked for; with a share, in so many replicates only."""
    count, share = shared
    u = jax.random.uniform(key)
    return {"x": jnp.where((jnp.arange(3) < count) & (u < share), jnp.nan, 10 + u)}


@pytest.mark.parametrize(
    ("count", "share", "stopped", "faults"),
    [
        (0, 1.0, "precision", None),
        # An entry that never exists, beside others, is none; all of them are a fault.
        (1, 1.0, "precision", None),
        (3, 1.0, "limit", "48 of 48 values are not finite"),
        # Once in a while is a fault too, in 8 batches of 16 here.
        (1, 0.1, "limit", " of 48 values are not finite"),
    ],
)
def test_what_is_not_finite_is_never_precise(count, share, stopped, faults):
    """Once all-NaN batches ended a run as precise."""
    sampler = Replicates(broken, constants=(count, share), dims={"x": ["part"]})
    data = run(sampler, 0, replicates_per_batch=4, batches=2, rel_mcse=0.1, max_batches=16)
    assert data.attrs["stopped"] == stopped
    assert data.sizes["batch"] == (8 if stopped == "precision" else 16)
    assert (faults or "") in str(data.attrs.get("faults", ""))
    assert ("faults" in data.attrs) == (faults is not None)


def uniform(key, shared, batch):
    return {"u": jax.random.uniform(key, (2,))}


test_bad_input_is_named = refusals(
    [
        (lambda: Replicates(uniform), {}, r"dims.u: got \('batch',\)"),
        (lambda: Replicates(uniform, dims={"u": ["c"], "v": []}), {}, "dims: got 'v'; allowed: an"),
        (lambda: Replicates(uniform, dims={"u": "c"}, coords={"c": [1]}), {}, "dims and coords"),
        (lambda: Replicates(lambda *_: jnp.ones(2)), {}, "replicate: got"),
        (lambda: Replicates(uniform, reduce="sum"), {}, "reduce: got 'sum'"),
        (
            lambda: Replicates(uniform, per_batch=lambda draw: np.ones(9), rows=True),
            {},
            "lead with R = 2",
        ),
        (lambda: scaled(1.0), {"replicates_per_batch": 1}, "replicates_per_batch: got 1"),
        (lambda: scaled(1.0), {"batches": 1}, "batches: got 1"),
        (lambda: scaled(1.0), {"max_batches": 0}, "max_batches: got 0"),
        (lambda: scaled(1.0), {"rel_mcse": 0.0}, "rel_mcse: got 0.0"),
        (lambda: scaled(1.0), {"negligible": -1.0}, "negligible: got -1.0"),
        (lambda: scaled(1.0), {"devices": []}, "devices: got"),
        (lambda: scaled(1.0), {"stream": (-1,)}, "stream: got -1"),
    ],
    lambda make, options: run(make(), 0, **({"replicates_per_batch": 2, "batches": 2} | options)),
)


def test_replicates_that_share_what_a_batch_drew_are_no_precision():
    """They differ between batches alone, by 1: at 16 of them the mean of 10 is known to 0.25."""
    sampler = Replicates(
        lambda key, shared, batch: {"x": 10 + batch + 1e-3 * jax.random.normal(key)},
        per_batch=lambda draw: draw.rng().normal(),
        reduce="stack",
    )
    options = {"replicates_per_batch": 8, "batches": 2, "max_batches": 16}
    assert run(sampler, 0, **options, rel_mcse=0.01).attrs["stopped"] == "limit"
    assert run(sampler, 0, **options, rel_mcse=0.1).attrs["stopped"] == "precision"
