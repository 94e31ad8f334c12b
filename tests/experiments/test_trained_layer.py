"""The layer of `trained_heads` and the moments of its heads, by plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sims.learning import STREAMS
from sims.study.experiment import load_experiment


@pytest.fixture(scope="module")
def experiment():
    return load_experiment("trained_heads")


@pytest.fixture(scope="module")
def simulate(experiment):
    return experiment.module("simulate")


def a_layer(simulate, heads=3, width=2, dimension=5, outputs=2, seed=0):
    """A layer whose parts are all different, temperatures too."""
    layer = simulate.random_layer(jax.random.key(seed), heads, width, dimension, outputs)
    layer = layer._replace(log_temperature=jnp.linspace(-0.4, 0.5, heads))
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64), layer)


def weights_by_numpy(layer, queries, keys):
    """Attention weights (H, q, n), loop by loop."""
    w_q, w_k, log_s = (np.asarray(leaf) for leaf in layer[:3])
    weights = np.zeros((len(w_q), len(queries), len(keys)))
    for h in range(len(w_q)):
        for j, x in enumerate(queries):
            scores = np.array([(x @ w_q[h]) @ (k @ w_k[h]) for k in keys]) / np.exp(log_s[h])
            exponentials = np.exp(scores - scores.max())
            weights[h, j] = exponentials / exponentials.sum()
    return weights


def by_numpy(layer, queries, keys, values, free=True):
    """``g_h`` (H, q, p), the layer's estimate and its A_h."""
    averages = weights_by_numpy(layer, queries, keys) @ values
    pool, pairs = np.eye(values.shape[1]) / len(averages), zip(*layer[3:], strict=True)
    mixing = np.array([np.asarray(o) @ np.asarray(v) if free else pool for v, o in pairs])
    estimate = sum(g @ a.T for a, g in zip(mixing, averages, strict=True))
    return averages, estimate, mixing


@pytest.mark.theory
@pytest.mark.parametrize("free", [True, False])
def test_forward_pass_by_plain_numpy(experiment, simulate, free):
    layer, rng = a_layer(simulate), np.random.default_rng(0)
    x, keys, values, labels = (rng.normal(size=s) for s in ((4, 5), (9, 5), (9, 2), (4, 2)))
    averages, estimate, mixing = by_numpy(layer, x, keys, values, free)
    weights = simulate.attention(layer, jnp.asarray(x), jnp.asarray(keys))
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(weights @ values, averages, rtol=1e-12)
    np.testing.assert_allclose(simulate.mixing(layer, free), mixing, rtol=1e-12)
    own = experiment.module("layer").loss(
        layer, free, *(jnp.asarray(a) for a in (x, labels, keys, values))
    )
    assert float(own) == pytest.approx(np.mean((estimate - labels) ** 2), rel=1e-12)


@pytest.mark.theory
def test_gradient_by_finite_differences(experiment, simulate):
    """Of every part of a free layer, by central differences of the NumPy layer."""
    layer, rng = a_layer(simulate), np.random.default_rng(1)
    x, keys, values, labels = (rng.normal(size=s) for s in ((4, 5), (9, 5), (9, 2), (4, 2)))
    slope = jax.grad(experiment.module("layer").loss)(
        layer, True, *(jnp.asarray(a) for a in (x, labels, keys, values))
    )
    for name, part in layer._asdict().items():
        direction = rng.normal(size=part.shape)
        ends = [
            np.mean(
                (
                    by_numpy(layer._replace(**{name: part + s * direction}), x, keys, values)[1]
                    - labels
                )
                ** 2
            )
            for s in (1e-5, -1e-5)
        ]
        expected = np.sum(np.asarray(getattr(slope, name)) * direction)
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(expected, rel=1e-6)


@pytest.mark.theory
@pytest.mark.parametrize("free", [True, False])
def test_heads_own_errors_and_their_gradient_by_plain_numpy(experiment, simulate, free):
    """The separate objective head by head; its slope by central differences, of one head's W_K."""
    layer, rng = a_layer(simulate), np.random.default_rng(4)
    x, keys, values, labels = (rng.normal(size=s) for s in ((4, 5), (9, 5), (9, 2), (4, 2)))

    def by_heads(layer):
        averages, _, mixing = by_numpy(layer, x, keys, values, free)
        own = [np.mean((3 * g @ a.T - labels) ** 2) for g, a in zip(averages, mixing, strict=True)]
        return sum(own) / 3

    def ours(layer):
        return experiment.module("layer").loss(
            layer, free, *(jnp.asarray(a) for a in (x, labels, keys, values)), objective="separate"
        )

    found, slope = jax.value_and_grad(ours)(layer)
    assert float(found) == pytest.approx(by_heads(layer), rel=1e-12)
    direction = np.zeros(layer.key.shape)
    direction[1] = rng.normal(size=layer.key.shape[1:])
    ends = [by_heads(layer._replace(key=layer.key + s * direction)) for s in (1e-5, -1e-5)]
    expected = np.sum(np.asarray(slope.key) * direction)
    assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(expected, rel=1e-6)


@pytest.mark.theory
def test_errors_and_covariances_by_drawn_labels(simulate):
    """M and S of free heads against plain NumPy, one task and its queries, 4000 designs.

    All entries within 4.5 standard errors of both runs (8 entries or fewer differ by algebra: false
    alarm below 1e-4), and the layer's own error, which no head's errors enter, is the mean of M.
    """
    layer, n, designs = a_layer(simulate, heads=2), 12, 4000
    stream, rotation, key = STREAMS["additive"](5), jnp.eye(5), jax.random.key(3)
    course = simulate.Course(stream, jnp.array([True]), jnp.asarray(0.7))
    sizes = {"n": n, "outputs": 2, "tasks": 1, "queries": 3, "designs": designs}
    found = jax.jit(lambda: simulate.moments(layer, True, course, rotation, key, **sizes))()
    for_target, for_queries, _ = jax.random.split(jax.random.fold_in(key, 0), 3)
    at = np.asarray(jax.random.normal(for_queries, (3, 5)))
    components = [stream.target(rotation, k) for k in jax.random.split(for_target, 2)]

    def target(x):
        return np.stack([np.asarray(m(jnp.asarray(x))) for m in components], -1)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(designs, n, 5))
    y = target(x) + 0.7 * rng.normal(size=(designs, n, 2))
    w_q, w_k, log_s, w_v, w_o = (np.asarray(leaf) for leaf in layer)
    f = np.zeros((2, designs, 3, 2))
    for h in range(2):
        scores = np.einsum("qa,rna->rqn", at @ w_q[h], x @ w_k[h]) / np.exp(log_s[h])
        w = np.exp(scores - scores.max(-1, keepdims=True))
        g = np.einsum("rqn,rnp->rqp", w / w.sum(-1, keepdims=True), y)
        f[h] = 2 * g @ (w_o[h] @ w_v[h]).T
    gaps, centred = f - target(at), f - f.mean(1, keepdims=True)
    for values, entries in ((gaps, found[0]), (centred, found[1])):
        products = np.einsum("hrqo,grqo->rhg", values, values) / 6
        error = products.std(0) / np.sqrt(designs)
        assert (np.abs(products.mean(0) - np.asarray(entries)) < 4.5 * np.sqrt(2) * error).all()
    own = ((f.mean(0) - target(at)) ** 2).mean((1, 2))
    error = own.std() / np.sqrt(designs)
    assert abs(float(found[0].mean()) - own.mean()) < 4.5 * np.sqrt(2) * error


@pytest.mark.theory
def test_moments_of_few_designs_by_loops(simulate):
    """M and S of pooled heads from the very draws, two tasks and three designs, to rounding."""
    layer, stream = a_layer(simulate, heads=2), STREAMS["isotropic"](5)
    rotation, key = jax.random.orthogonal(jax.random.key(5), 5), jax.random.key(4)
    course = simulate.Course(stream, jnp.array([False]), jnp.asarray(0.7))
    sizes = {"n": 8, "outputs": 2, "tasks": 2, "queries": 3, "designs": 3}
    found = simulate.moments(layer, False, course, rotation, key, **sizes)
    errors, covariance = np.zeros((2, 2)), np.zeros((2, 2))
    for task in range(2):
        for_target, for_queries, for_keys = jax.random.split(jax.random.fold_in(key, task), 3)
        at = jax.random.normal(for_queries, (3, 5))
        m = [stream.target(rotation, k) for k in jax.random.split(for_target, 2)]
        truth, draws = np.stack([o(at) for o in m], -1), []
        for design in range(3):
            x = jax.random.normal(jax.random.fold_in(for_keys, design), (8, 5))
            signal = np.stack([o(x) for o in m], -1)
            w = weights_by_numpy(layer, np.asarray(at), np.asarray(x))
            draws.append(w @ signal)  # A_h = I/2 makes f̂_h = g_h
            noise = 0.49 * np.einsum("hqn,gqn->hg", w, w) / 3
            errors += noise / 6
            covariance += noise / 6
        f = np.array(draws)
        for h in range(2):
            for g in range(2):
                errors[h, g] += np.mean((f[:, h] - truth) * (f[:, g] - truth)) / 2
                products = (f[:, h] - f[:, h].mean(0)) * (f[:, g] - f[:, g].mean(0))
                covariance[h, g] += products.sum(0).mean() / 2 / 2
    np.testing.assert_allclose(found[0], errors, rtol=1e-6)
    np.testing.assert_allclose(found[1], covariance, rtol=1e-6)


@pytest.mark.theory
def test_correlations_of_maps_are_means_over_queries_and_limits_of_weights(simulate):
    """By drawn queries, 5 standard errors of which miss one in a million; by softmax of 10⁵ keys.

    Sharpness and maps of every head are its own, and W_Q is not W_K.
    """
    rng = np.random.default_rng(4)
    query, key = 0.4 * rng.normal(size=(2, 3, 5, 2))
    layer = a_layer(simulate)._replace(
        query=query, key=key, log_temperature=np.log([0.7, 1.0, 1.6])
    )
    found = np.asarray(simulate.correlation_of_maps(layer))
    np.testing.assert_allclose(np.diagonal(found), 1, rtol=1e-12)
    scale = np.array([0.7, 1.0, 1.6])[:, None, None]
    products = np.einsum("hdk,hek->hde", key, query) / scale
    x = rng.normal(size=(100_000, 5))
    tilts = np.einsum("hde,qe->hqd", products, x)
    for h, g in ((0, 1), (0, 2), (1, 2)):
        each = np.exp(-((tilts[h] - tilts[g]) ** 2).sum(-1) / 2)
        error = each.std(ddof=1) / np.sqrt(len(x))
        assert found[h, g] == found[g, h] < 0.98
        assert abs(found[h, g] - each.mean()) < 5 * error
    one, keys = 0.5 * x[:1], rng.normal(size=(100_000, 5))
    scores = np.einsum("nd,hdk,qe,hek->hn", keys, key, one, query) / scale[..., 0]
    weights = np.exp(scores)
    overlaps = weights @ weights.T
    rho = overlaps / np.sqrt(np.outer(np.diagonal(overlaps), np.diagonal(overlaps)))
    law = np.exp(-((0.5 * (tilts[:, None, 0] - tilts[None, :, 0])) ** 2).sum(-1) / 2)
    np.testing.assert_allclose(rho, law, atol=0.02)


def test_what_a_head_sees_of_many_keys(simulate):
    """A wave at θ = W_K W_Qᵀx/s, damped, and noise e^{⟨θ_h, θ_g⟩}/n, from 10⁶ keys.

    Effective keys are 10⁵ or more: averages of a wave have standard errors below 0.0032, held to
    4.5 of them; sums of squared weights, ratios of means of 10⁶, are held to 5 %.
    """
    layer, n = a_layer(simulate, heads=2, dimension=3), 10**6
    x, frequency = jnp.array([[0.6, -0.4, 0.5]]), np.array([0.9, -0.5, 0.7])
    keys = np.random.default_rng(0).normal(size=(n, 3))
    weights = np.asarray(simulate.attention(layer, x, jnp.asarray(keys)))[:, 0]
    scale = np.exp(np.asarray(layer.log_temperature))[:, None]
    theta = np.einsum("hdk,hek,e->hd", layer.key, layer.query, x[0]) / scale
    assert np.abs(theta).max() > 0.1
    damped = np.exp(-(frequency @ frequency) / 2) * np.sin(theta @ frequency)
    assert (n * (weights**2).sum(1) < 10).all()
    np.testing.assert_allclose(weights @ np.sin(keys @ frequency), damped, atol=4.5 * 0.0032)
    np.testing.assert_allclose(n * weights @ weights.T, np.exp(theta @ theta.T), rtol=0.05)


@pytest.mark.theory
def test_what_holds_of_mixed_heads():
    """Rescaled heads always; weighted ones if ΣA = I and every A is symmetric, else with a rest."""
    rng = np.random.default_rng(0)
    g, m, mix = rng.normal(size=(3, 50, 2)), rng.normal(size=(50, 2)), rng.normal(size=(3, 2, 2))

    def parts(mix):
        f = np.einsum("hop,hqp->qo", mix, g)
        own, apart = g - m, g - f
        errors, spread = (np.einsum("hqo,hop,hqp->", v, mix, v) for v in (own, apart))
        rest = np.einsum("qo,hop,hqp->", f - m, mix.transpose(0, 2, 1) - mix, g)
        return np.sum((f - m) ** 2), errors, spread, rest

    f = np.einsum("hop,hqp->qo", mix, g)
    rescaled = 3 * np.einsum("hop,hqp->hqo", mix, g)
    gaps = rescaled - m
    products = np.einsum("hqo,gqo->hg", gaps, gaps)
    whole = np.sum((f - m) ** 2)
    assert products.mean() == pytest.approx(whole)
    ambiguity = np.sum((rescaled - f) ** 2) / 3
    assert np.trace(products) / 3 - ambiguity == pytest.approx(whole)
    mix[2] = np.eye(2) - mix[0] - mix[1]
    whole, errors, spread, rest = parts(mix)
    assert errors - spread - rest == pytest.approx(whole)
    assert abs(rest) > 0.01 * whole
    whole, errors, spread, rest = parts((mix + mix.transpose(0, 2, 1)) / 2)
    assert rest == pytest.approx(0, abs=1e-12)
    assert errors - spread == pytest.approx(whole)


def test_random_start(simulate):
    """Entries of variance 1/d and 1/p, s = √d_k; the first heads are the same for any number."""
    many = simulate.random_layer(jax.random.key(0), 400, 3, 6, 4)
    for part, variance in ((many.query, 1 / 6), (many.key, 1 / 6), (many.value, 1 / 4)):
        # A variance of 6400 normal entries or more has a relative error of 1.8 %.
        assert float(jnp.mean(part**2)) == pytest.approx(variance, rel=0.08)
    np.testing.assert_allclose(jnp.exp(many.log_temperature), np.sqrt(3), rtol=1e-6)
    few = simulate.random_layer(jax.random.key(0), 2, 3, 6, 4)
    for one, other in zip(few, many, strict=True):
        np.testing.assert_array_equal(one, other[:2])


@pytest.mark.parametrize("free", [True, False])
def test_heads_that_start_equal_stay_equal(simulate, free):
    """So that one of them may be looked at for all; heads that start apart do not meet."""
    drawn = simulate.random_layer(jax.random.key(0), 3, 2, 4, 2)
    equal = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), drawn)
    for start, tolerance in ((equal, 1e-6), (drawn, None)):
        path = simulate.train(
            STREAMS["additive"](4),
            jnp.eye(4),
            free,
            start,
            jax.random.key(1),
            n=8,
            queries=4,
            tasks=2,
            steps=30,
            rate=0.1,
            noise_sd=0.5,
        )
        for part in (path.query, path.key, path.value, path.output):
            gap = np.abs(part - part[:, :1]).max()
            assert gap < tolerance if tolerance else gap > 0.1


def test_the_value_path_is_trained_only_if_free(experiment, simulate):
    start = simulate.random_layer(jax.random.key(0), 2, 2, 4, 2)
    for free in (True, False):
        path = simulate.train(
            STREAMS["isotropic"](4),
            jnp.eye(4),
            free,
            start,
            jax.random.key(1),
            n=8,
            queries=4,
            tasks=1,
            steps=3,
            rate=0.1,
            noise_sd=0.5,
        )
        assert path.query.shape == (4, 2, 4, 2)
        np.testing.assert_array_equal(path.key[0], start.key.astype(jnp.float32))
        for trained in (path.query, path.key, path.log_temperature):
            assert float(jnp.abs(trained[-1] - trained[0]).min()) > 1e-3
        for part in (path.value, path.output):
            assert bool(jnp.any(part[-1] != part[0])) == free


def test_training_is_on_noisy_labels_of_fresh_tasks(experiment, simulate):
    """Three steps of Adam on the loss of tasks drawn by hand, one after the other."""
    start, stream, noise_sd = simulate.random_layer(jax.random.key(0), 2, 2, 4, 2), "additive", 0.7
    sizes = {"n": 8, "queries": 4, "tasks": 2, "steps": 3, "rate": 0.1}
    turn, key = jax.random.orthogonal(jax.random.key(5), 4), jax.random.key(1)
    found = simulate.train(STREAMS[stream](4), turn, True, start, key, noise_sd=noise_sd, **sizes)
    layer = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), start)
    optimiser = optax.adam(optax.cosine_decay_schedule(0.1, 3))
    state = optimiser.init(layer)
    for step, own in enumerate(jax.random.split(key, 3)):
        total = jax.tree.map(jnp.zeros_like, layer)
        for task in jax.random.split(own, 2):
            for_target, for_points, for_noise = jax.random.split(task, 3)
            x = jax.random.normal(for_points, (12, 4), jnp.float32)
            y = jnp.stack(
                [
                    STREAMS[stream](4).target(turn, one)(x)
                    for one in jax.random.split(for_target, 2)
                ],
                1,
            )
            y = y + noise_sd * jax.random.normal(for_noise, (12, 2), jnp.float32)
            slope = jax.grad(experiment.module("layer").loss)(
                layer, True, x[8:], y[8:], x[:8], y[:8]
            )
            total = jax.tree.map(lambda a, b: a + b / 2, total, slope)
        change, state = optimiser.update(total, state)
        layer = optax.apply_updates(layer, change)
        for path, expected in zip(found, layer, strict=True):
            np.testing.assert_allclose(path[step + 1], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("free", [True, False])
def test_equal_heads_are_looked_at_as_one(simulate, free):
    """What one head says for three equal ones is what the three say; training keeps them equal."""
    stream, rotation, key = STREAMS["additive"](5), jnp.eye(5), jax.random.key(8)
    start = jax.tree.map(
        lambda leaf: jnp.repeat(leaf[:1], 3, axis=0).astype(jnp.float32),
        a_layer(simulate, heads=2),
    )
    course = simulate.Course(stream, jnp.array([free]), jnp.asarray(0.7))
    path = simulate.train(
        stream,
        rotation,
        free,
        start,
        key,
        n=8,
        queries=4,
        tasks=1,
        steps=20,
        rate=0.05,
        noise_sd=0.7,
    )
    layer = simulate.Layer(*(leaf[-1].astype(jnp.float64) for leaf in path))
    for leaf in layer:
        np.testing.assert_allclose(leaf, jnp.broadcast_to(leaf[:1], leaf.shape), rtol=1e-5)
    assert not np.isclose(layer.query, start.query).any()
    same = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), layer)
    one = jax.tree.map(lambda leaf: leaf[:1], layer)
    sizes = {"n": 8, "outputs": 2, "tasks": 2, "queries": 3, "designs": 3}
    of_three = simulate.moments(same, free, course, rotation, key, **sizes)
    of_one = simulate.moments(one, free, course, rotation, key, alike=3, **sizes)
    for found, expected in zip(of_one, of_three, strict=True):
        np.testing.assert_allclose(jnp.broadcast_to(found, (3, 3)), expected, rtol=1e-12)
