"""Hidden scores (arXiv 2511.20698): what is true, and what is false, of them by algebra."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from sims.attention import hidden
from sims.attention.attention import softmax

STARTS = ("zero", "copy")


def library(tokens, query, key, value):
    """Attention of one head by Equinox."""
    width, d = query.shape[1], tokens.shape[1]
    module = eqx.nn.MultiheadAttention(
        1, d, qk_size=width, vo_size=d, dtype=jnp.float64, key=jax.random.key(0)
    )
    names = ("query", "key", "value", "output")
    module = eqx.tree_at(
        lambda m: [getattr(m, f"{name}_proj").weight for name in names],
        module,
        [query.T, key.T, value.T, jnp.eye(d)],
    )
    return np.asarray(module(tokens, tokens, tokens))


@pytest.mark.parametrize("start", STARTS)
def test_without_memory_a_stack_is_one_of_library_attention(start):
    """With its skip weight; with memory the first layer's scores are plain under a copy alone."""
    rng, skip = np.random.default_rng(0), 0.3
    tokens = expected = rng.normal(size=(8, 12))
    query, key = rng.normal(size=(2, 4, 12, 4)) / 12**0.5
    value, state = rng.normal(size=(4, 12, 12)) / 12**0.5, np.zeros((8, 8))
    form = query @ key.swapaxes(1, 2) / 2
    for layer in range(4):
        share = hidden.first_share(0.0, start) if layer == 0 else 1.0
        tokens, state = hidden.layer(tokens, state, form[layer], value[layer], 0.0, skip, share)
        attended = library(expected, query[layer], key[layer], value[layer])
        expected = skip * expected + (1 - skip) * attended
    np.testing.assert_allclose(tokens, expected, rtol=1e-10, atol=1e-12)
    same = np.array_equal(hidden.accumulate(state[None], 0.6, start)[0], state)
    assert same == (start == "copy")


@pytest.mark.parametrize("start", STARTS)
def test_frozen_scores_change_their_temperature_alone(start):
    """h_l = β_lS, β_l = 1 − α′^{l+1} from zero, and 1 with a copy."""
    scores = np.random.default_rng(1).normal(size=(5, 5))
    found = hidden.accumulate(np.stack([scores] * 4), 0.6, start)[-1]
    beta = 1.0 if start == "copy" else 1 - 0.6**4
    np.testing.assert_allclose(found, beta * scores, rtol=1e-12)


@pytest.mark.parametrize("start", STARTS)
def test_ranks_add_up_over_layers_but_not_beyond_the_features_of_tokens_that_stay(start):
    """min(n, (l + 1)d_k) of tokens that move; min(n, d, (l + 1)d_k) of the same ones."""
    rng, n, d, width = np.random.default_rng(2), 12, 8, 3
    query, key = rng.normal(size=(2, 5, d, width))
    moving = rng.normal(size=(5, n, d))
    for tokens, most in ((moving, n), (moving[:1], d)):
        scores = (tokens @ query) @ (tokens @ key).swapaxes(1, 2)
        ranks = np.linalg.matrix_rank(hidden.accumulate(scores, 0.5, start), tol=1e-9)
        assert ranks.tolist() == [min(most, (layer + 1) * width) for layer in range(5)]


def simplex_sizes(tokens, layers, memory=0.0, start="zero", skip=0.0):
    """``a_{l+1} = a_l(α + (1 − α)w f(b_l))`` with ``f(b) = (e^b − 1)/(e^b − 1 + n)``."""
    n, size, beta, value = tokens
    sizes, score = [size], 0.0
    for layer in range(layers):
        share = 1.0 if layer == 0 and start == "copy" else 1 - memory
        score = memory * score + share * beta * sizes[-1] ** 2
        pull = np.expm1(score) / (np.expm1(score) + n)
        sizes.append(sizes[-1] * (skip + (1 - skip) * value * pull))
    return np.array(sizes)


@pytest.mark.parametrize("start", STARTS)
def test_the_recursion_of_simplex_tokens_by_layers(start):
    """Tokens ``m + a(e_i − 1/n)`` with M = βI and W = wI."""
    found = simplex_sizes((3, 0.6, 1.3, 0.8), 6, 0.6, start, 0.1)
    tokens, scores = np.column_stack([0.6 * (np.eye(3) - 1 / 3), np.ones(3)]), np.zeros((3, 3))
    for layer in range(6):
        share = hidden.first_share(0.6, start) if layer == 0 else 0.4
        maps = 1.3 * np.eye(4), 0.8 * np.eye(4)
        tokens, scores = hidden.layer(tokens, scores, *maps, 0.6, 0.1, share)
        assert np.ptp(tokens[:, 0]) == pytest.approx(found[layer + 1], rel=1e-10)


def test_simplex_tokens_stay_further_apart_under_a_copy_but_not_from_zero():
    """For 0 ≤ w ≤ 1, by induction; two tokens and one layer are enough for the other start."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        size, beta = np.exp(rng.normal(size=2))
        value, skip, memory = rng.uniform(size=3)
        tokens = int(rng.integers(2, 5)), size, beta, value
        plain, copy = (simplex_sizes(tokens, 8, m, "copy", skip) for m in (0.0, memory))
        assert (copy >= plain * (1 - 1e-9)).all()
    tokens = 2, 1.0, 1.0, 1.0
    assert simplex_sizes(tokens, 1, 0.5)[1] < 0.9 * simplex_sizes(tokens, 1)[1]


def energy_of(state, scores, memories):
    """``E(x, h) = ½‖x‖² + h·f − log Σe^h − fᵀKx``, f = softmax(h)."""
    attended = softmax(scores)
    overlap = np.einsum("sn,snd,sd->s", attended, memories, state)
    own = (state**2).sum(1) / 2 + (scores * attended).sum(1) - logsumexp(scores, axis=1)
    return own - overlap


def test_the_energy_falls_on_new_scores_if_values_are_keys_and_only_then():
    """No step raises it by more than rounding; on old scores, or with other values, some do.

    A step is ``h ← α′h + (1 − α′)Kx``, then ``x ← αx + (1 − α)Vᵀsoftmax(h)``.
    """
    rng, count = np.random.default_rng(4), 400
    keys, values = rng.normal(size=(2, count, 3, 2))
    skip, memory = rng.uniform(size=(2, count, 1))
    begin = 2 * rng.normal(size=(count, 2)), 2 * rng.normal(size=(count, 3))
    rises = []
    for own, old in ((keys, False), (keys, True), (values, False)):
        state, scores = begin
        energy = [energy_of(state, scores, keys)]
        for _step in range(10):
            renewed = memory * scores + (1 - memory) * np.einsum("snd,sd->sn", keys, state)
            attended = softmax(scores if old else renewed)
            state = skip * state + (1 - skip) * np.einsum("sn,snd->sd", attended, own)
            scores = renewed
            energy.append(energy_of(state, scores, keys))
        rises.append(np.diff(energy, axis=0).max())
    assert rises[0] < 1e-12 < 0.01 < min(rises[1:])
