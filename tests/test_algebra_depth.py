"""Depth and heads (arXiv 2604.23681): what is true or false by algebra, with its counterexample."""

import itertools

import numpy as np
import pytest

from sims.problem.diversity import DEFINITIONS

N, D, HEADS, WIDTH = 6, 8, 2, 4
rank = np.linalg.matrix_rank


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def affine(tokens):
    """Affine rank: that of the tokens less their mean."""
    return rank(tokens - tokens.mean(0), tol=1e-9)


def softmax(scores):
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def attend(tokens, query, key, value, output):
    scores = (tokens @ query) @ (tokens @ key).swapaxes(1, 2)
    return (softmax(scores) @ tokens @ value @ output).sum(0)


def layer_norm(tokens):
    centred = tokens - tokens.mean(-1, keepdims=True)
    return centred / centred.std(-1, keepdims=True)


def test_layer_norm_keeps_affine_rank_of_few_generic_tokens_only(rng):
    """`layernorm-rank`: false. Of all tokens of entries −1, 0, 1 the smallest exceptions are these.

    One rank is lost at 2 × 2, where a token is left its sign, and gained first at 3 × 3.
    """
    for n in range(2, D + 1):
        tokens = rng.normal(size=(n, D))
        assert affine(layer_norm(tokens)) == affine(tokens) == n - 1
    changes = {}
    for n, d in ((2, 2), (2, 3), (3, 2), (3, 3)):
        own = [t for t in itertools.product((-1.0, 0.0, 1.0), repeat=d) if len(set(t)) > 1]
        sets = map(np.array, itertools.combinations_with_replacement(own, n))
        changes[n, d] = {int(affine(layer_norm(x)) - affine(x)) for x in sets}
    assert min(changes[2, 2]) == min(changes[2, 3]) == -1
    assert max(changes[2, 2] | changes[2, 3] | changes[3, 2]) == 0
    assert max(changes[3, 3]) == 1
    line = rng.normal(size=D) + rng.normal(size=(N, 1)) * rng.normal(size=D)
    assert (affine(line), affine(layer_norm(line))) == (1, 2)
    wide = rng.normal(size=(D + 1, D))
    assert (rank(wide), rank(layer_norm(wide))) == (D, D - 1)


def test_ranks_after_norms_by_the_formula(rng):
    """`layernorm-rank-corrected`: rank(XP) − [s ∈ col(XP)], and rank X − [s ∈ col X] of RMSNorm."""
    for n, d, k in itertools.product((2, 4, 9), (2, 3, 5), (1, 2, 4)):
        tokens = rng.normal(size=d) + rng.normal(size=(n, k)) @ rng.normal(size=(k, d))
        for x in (tokens - tokens.mean(1, keepdims=True), tokens):
            size = np.linalg.norm(x, axis=1, keepdims=True)
            inside = rank(np.hstack([x, size]), tol=1e-9) == rank(x, tol=1e-9)
            assert affine(x / size) == rank(x, tol=1e-9) - inside


def test_narrow_weights_lose_rank_without_the_residual_stream(rng):
    """`residual-generic`: true, X + AXW keeps rank for almost every W; AXW does where W is square.

    The minors of X + AXW are polynomials in W that are not 0 at W = 0. A W of rank 1 is no
    exception there, and leaves AXW the rank 1.
    """
    tokens = rng.normal(size=(N, D))
    mixed = softmax(tokens @ tokens.T / D**0.5) @ tokens
    narrow = rng.normal(size=(D, 1)) @ rng.normal(size=(1, D))
    for weights in (rng.normal(size=(D, D)), narrow):
        assert affine(tokens + mixed @ weights) == N - 1
    assert affine(mixed @ rng.normal(size=(D, D))) == N - 1
    assert affine(mixed @ narrow) == 1
    assert affine(tokens @ (np.eye(D) - np.eye(D))) == 0  # A = I, W = −I is the exception


def test_attention_cubes_the_residual(rng):
    """One layer of tokens near collapse: ‖R′‖ ~ ‖R‖³; under a bias by position ‖R′‖ ~ ‖R‖."""
    mean, apart, score = rng.normal(size=D), rng.normal(size=(N, D)), rng.normal(size=(D, D))
    for bias, order in ((0.0, 3), (-0.5 * abs(np.subtract.outer(range(N), range(N))), 1)):
        sizes = []
        for size in (1e-2, 1e-3):
            x = mean + size * apart
            after = softmax(x @ score @ x.T + bias) @ x
            sizes.append(np.linalg.norm(after - after.mean(0)))
        assert np.log10(sizes[0] / sizes[1]) == pytest.approx(order, abs=0.1)


def test_attention_stays_in_the_row_span_under_scalar_values_only(rng):
    """`attention-span`: false; a share 1 − r/d of normal W's output is outside, of W = wI none."""
    basis = np.linalg.qr(rng.normal(size=(D, 2)))[0].T
    mixed = softmax(rng.normal(size=(N, N))) @ rng.normal(size=(N, 2)) @ basis
    assert np.allclose(mixed, mixed @ basis.T @ basis)
    moved = mixed @ rng.normal(size=(4000, D, D))
    outside = np.sum((moved - moved @ basis.T @ basis) ** 2) / np.sum(moved**2)
    assert outside == pytest.approx(1 - 2 / D, abs=0.01)


def test_an_mlp_leaves_the_span_unless_tokens_are_equal(rng):
    """`mlp-span`: true of distinct tokens, even on a line, and false of equal ones."""
    inner, shift, outer = rng.normal(size=(D, 16)), rng.normal(size=16), rng.normal(size=(16, D))
    line = rng.normal(size=(N, 1)) @ rng.normal(size=(1, D))
    assert rank(np.tanh(line @ inner + shift) @ outer) == N
    assert affine(np.tanh(np.tile(line[:1], (N, 1)) @ inner + shift) @ outer) == 0


def test_gates_cost_one_over_the_head_dimension():
    """`gate-overhead`: true from d_k = 63 on; false at 32, and of a table of 1,024 positions."""
    for width, positions, small in ((64, None, True), (32, None, False), (64, 1024, False)):
        d = 12 * 64
        gates = np.empty((positions or d, d // width))
        assert (gates.size / np.empty((d, d)).size < 0.016) == small


def test_four_symmetries_leave_a_layer_as_it_is(rng):
    """`symmetry`: true of four gauges; breaking one need not end its collapse.

    Gates leave as many directions of free heads open. A causal mask, which tells keys apart, does
    end the fall of σ₂/σ₁ of attention with n.
    """
    tokens, order = rng.normal(size=(N, D)), rng.permutation(N)
    query, key, value = rng.normal(size=(3, HEADS, D, WIDTH)) / D**0.5
    output, mix = rng.normal(size=(HEADS, WIDTH, D)), rng.normal(size=(HEADS, WIDTH, WIDTH))
    out, back = attend(tokens, query, key, value, output), np.linalg.inv(mix)
    weights = softmax((tokens @ query) @ (tokens @ key).swapaxes(1, 2))
    for moved, expected in (
        (attend(tokens[order], query, key, value, output), out[order]),
        ((weights[..., order] @ tokens[order] @ value @ output).sum(0), out),
        (attend(tokens, query, key, value @ mix, back @ output), out),
        (attend(tokens, query @ mix, key @ back.swapaxes(1, 2), value, output), out),
    ):
        np.testing.assert_allclose(moved, expected, atol=1e-10)
    plain = np.vstack([np.eye(WIDTH)] * HEADS)
    for gate in rng.uniform(0.1, 0.9, (N, HEADS)):
        assert rank(np.repeat(gate, WIDTH)[:, None] * plain) == rank(plain) == WIDTH
    ratios = {}
    for n, masked in itertools.product((32, 256), (False, True)):
        scores = 0.5 * rng.normal(size=(n, n))
        a = softmax(np.where(np.tri(n), scores, -np.inf) if masked else scores)
        first, second = np.linalg.svd(a, compute_uv=False)[:2]
        ratios[n, masked] = second / first
    assert ratios[256, False] < 0.5 * ratios[32, False]
    assert ratios[256, True] > 0.9 * ratios[32, True]


def test_a_gauge_orbit_moves_every_index_and_no_error(rng):
    """Heads f̄ + s(f_h − f̄): as s rises heads differ more by every index, and the error stays.

    Mean variance v and covariance c move along v/H + (1 − 1/H)c = constant.
    """
    errors, heads = rng.normal(size=(500, 4)) + rng.normal(size=(500, 1)), 4
    mean, seen = errors.mean(1, keepdims=True), []
    for s in (0.5, 1.0, 1.5):
        moved = mean + s * (errors - mean)
        products = moved.T @ moved / len(moved)
        normalised = products * heads / np.trace(products)
        seen.append([index(normalised) for index in DEFINITIONS.values()])
        variance = np.trace(products) / heads
        covariance = (products.sum() - np.trace(products)) / (heads * (heads - 1))
        pooled = variance / heads + (1 - 1 / heads) * covariance
        assert pooled == pytest.approx(np.mean(mean**2))
    assert (np.diff(seen, axis=0) > 0).all()
