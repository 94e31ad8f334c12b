"""Hierarchical scores (arXiv 2604.08829): what is true, and what is false, of them by algebra."""

import jax
import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import nnls

from sims.attention import hierarchy

EXACT = {"rtol": 1e-9, "atol": 1e-9}


def drawn(tokens, width, levels, seed=0, head_width=None):
    """Tokens, taps, projections and weights of the levels."""
    rng = np.random.default_rng(seed)
    pairs = list(rng.normal(size=(levels, 2, width, head_width or width)))
    return (
        rng.normal(size=(tokens, width)),
        np.array([1.1, -0.7]),
        pairs,
        rng.dirichlet([1] * levels),
    )


def copies(x, taps, levels):
    """Z_0, …, Z_{L−1}."""
    own = hierarchy.levels(x, taps, levels)
    return [hierarchy.repeated(part, level, len(x)) for level, part in enumerate(own)]


def scores(x, taps, pairs, weights):
    coarse = hierarchy.levels(x, taps, len(pairs))
    return hierarchy.mixed(hierarchy.level_scores(coarse, pairs, len(x)), weights)


def products(function, *arrays):
    """Multiply–adds of the matrix products in the trace of a function."""
    found = 0
    for equation in jax.make_jaxpr(function)(*arrays).eqns:
        if equation.primitive.name == "dot_general":
            (over, _), _ = equation.params["dimension_numbers"]
            inner = [equation.invars[0].aval.shape[axis] for axis in over]
            found += int(np.prod(equation.outvars[0].aval.shape) * np.prod(inner))
    return found


def test_scores_cost_less_than_four_thirds_at_lengths_that_divide_and_more_at_others():
    """Σ⌈T/2^l⌉²/T² of one level's: 1.3125 at L = 3, but 1.5 of two tokens."""

    def cost(tokens, levels):
        x, taps, pairs, weights = drawn(tokens, 3, levels)
        sizes = [len(part) for part in hierarchy.levels(x, taps, levels)]
        assert sizes == [-(-tokens // 2**level) for level in range(levels)]
        each = [products(lambda a: a @ a.T, x[:size]) for size in sizes]
        whole = products(lambda x: scores(x, taps, pairs, weights), x)
        assert whole == sum(each) + sum(2 * size * 9 for size in sizes)  # scores, projections
        return sum(each) / each[0]

    assert cost(16, 3) == cost(64, 3) == 1.3125
    assert cost(64, 4) == 4 / 3 * (1 - 4.0**-4)
    assert cost(2, 3) == 1.5


@pytest.mark.parametrize(("tokens", "width"), [(16, 64), (16, 16), (64, 4)])
def test_a_whole_layer_costs_another_multiple(tokens, width):
    """(T(1 + s) + 4d + 2pd)/(2T + 4d), s = Σ4^{−l}, p = Σ_{l>0}2^{−l}: not 1.3125 at L = 3."""
    x, taps, pairs, weights = drawn(tokens, width, 3)
    value = np.eye(width)
    whole, plain = (
        products(lambda x, k=k: hierarchy.attend(x, taps, pairs[:k], weights[:k], value) @ value, x)
        for k in (3, 1)
    )
    expected = (2.3125 * tokens + 4 * width + 1.5 * width) / (2 * tokens + 4 * width)
    assert whole / plain == pytest.approx(expected)
    assert abs(whole / plain - 1.3125) > 0.01


@pytest.mark.parametrize(("tokens", "width", "levels"), [(4, 2, 2), (32, 3, 4)])
def test_definite_levels_make_a_definite_kernel(tokens, width, levels):
    """With W_K = W_Q: S, its exponential, and the spectrum of that with its rows normalised."""
    x, taps, pairs, weights = drawn(tokens, width, levels)
    whole = scores(x, taps, [(query, query) for query, _ in pairs], weights)
    raised = np.exp(whole / np.abs(whole).max())
    for matrix in (whole, raised):
        assert np.linalg.eigvalsh(matrix)[0] > -1e-12 * np.abs(matrix).max()
    spectrum = np.linalg.eigvals(raised / raised.sum(1, keepdims=True))
    assert max(-spectrum.real.min(), np.abs(spectrum.imag).max()) < 1e-6


def test_definite_levels_are_needed_where_copies_are_independent_and_only_there():
    """Full column rank of [Z_0 … Z_{L−1}]: some x sees one direction of one level alone."""
    x, taps, _, weights = drawn(16, 2, 3)
    z = np.concatenate(copies(x, taps, 3), axis=1)
    assert np.linalg.matrix_rank(z) == 6
    forms = [np.eye(2), np.eye(2), np.diag([1.0, -0.01])]
    whole = z @ block_diag(*(w * form for w, form in zip(weights, forms, strict=True))) @ z.T
    alone = np.linalg.pinv(z).T[:, 5]
    assert alone @ whole @ alone == pytest.approx(-0.01 * weights[2])
    # One token: 4 at the first level carries −1 at the second.
    (first,), (second,) = copies(np.ones((1, 1)), taps, 2)
    assert 4 * first**2 - second**2 > 0


def test_parts_of_the_scores_are_orthogonal():
    whole = scores(*drawn(8, 3, 3))
    symmetric, skew = whole + whole.T, whole - whole.T
    assert abs((symmetric * skew).sum()) < 1e-12 * (whole**2).sum()


@pytest.mark.parametrize(("tokens", "full"), [(8, True), (4, False)])
def test_levels_give_independent_pairs_if_the_coarsest_has_enough_tokens(tokens, full):
    """dim span{Z_l E Z_lᵀ} = Ld², of which Ld(d + 1)/2 are symmetric: not with one coarse token."""
    x, taps, _, _ = drawn(tokens, 2, 3)
    basis = np.array([np.outer(a, b) for z in copies(x, taps, 3) for a in z.T for b in z.T])
    turned = basis.swapaxes(1, 2)
    ranks = [
        np.linalg.matrix_rank(part.reshape(len(basis), -1), tol=1e-9)
        for part in (basis, basis + turned, basis - turned)
    ]
    assert (ranks == [12, 9, 3]) == full
    assert full or ranks[0] < 12


def test_circulation_is_of_the_antisymmetric_part_but_symmetric_scores_are_not_reciprocal():
    """log(A_ij A_jk A_ki/(A_ik A_kj A_ji)) = 2(S^a_ij + S^a_jk + S^a_ki); S^a = 0 is reversible."""
    whole = scores(*drawn(6, 2, 2)) / 10
    skew, symmetric = (whole - whole.T) / 2, (whole + whole.T) / 2
    log = np.log(hierarchy.softmax(whole))
    turn = log[0, 1] + log[1, 2] + log[2, 0] - log[0, 2] - log[2, 1] - log[1, 0]
    assert turn == pytest.approx(2 * (skew[0, 1] + skew[1, 2] + skew[2, 0]))
    attention = hierarchy.softmax(symmetric)
    flow = np.exp(symmetric).sum(1)[:, None] * attention
    np.testing.assert_allclose(flow, flow.T, **EXACT)
    assert np.abs(attention - attention.T).max() > 0.01


def test_one_level_is_causal_attention():
    """M_0 = M/λ_0, and M_l = 0 beyond."""
    x, taps, pairs, weights = drawn(9, 3, 3)
    value = np.eye(3)
    single = [(pairs[0][0] / weights[0], pairs[0][1]), *[(0 * q, k) for q, k in pairs[1:]]]
    found = hierarchy.attend(x, taps, single, weights, value)
    np.testing.assert_allclose(found, hierarchy.attend(x, taps, pairs[:1], [1.0], value), **EXACT)


def test_averaging_taps_are_matched_at_an_input_but_a_difference_at_none():
    """Rows of weights are positive; and scores of small tokens vanish, so attention is uniform."""
    x, taps, pairs, weights = drawn(4, 6, 2)
    misfit = {}
    for name, row in (("average", [0, 0, 0.5, 0.5]), ("difference", [0, 0, -1.0, 1.0])):
        misfit[name] = min(nnls(x.T, sign * np.array(row) @ x)[1] for sign in (1, -1))
    assert misfit["average"] < 1e-9 < 0.1 < misfit["difference"]
    small = hierarchy.attend(1e-6 * x, taps, pairs, weights, np.eye(6))[-1]
    wanted = 0.5e-6 * (x[-1] + x[-2])
    best = (small @ wanted) / (small @ small) * small
    assert np.linalg.norm(best - wanted) > 0.1 * np.linalg.norm(wanted)


def test_the_order_of_earlier_tokens_matters_to_two_levels_alone():
    """Of attention without positions the last output is the same: the inclusion is strict."""
    x, taps, pairs, weights = drawn(3, 1, 2)
    other = x[[1, 0, 2]]
    gaps = [
        np.ptp(
            [
                hierarchy.attend(y, taps, pairs[:k], weights[:k], np.eye(1))[-1, 0]
                for y in (x, other)
            ]
        )
        for k in (1, 2)
    ]
    assert gaps[0] < 1e-12 < 1e-3 < gaps[1]


def test_leading_singular_vectors_of_a_form_are_not_its_best_of_a_rank():
    """Of scores Z M Zᵀ the least error is their own tail of singular values (Eckart and Young)."""
    x, _, ((query, key),), _ = drawn(16, 4, 1)
    u, s, v = np.linalg.svd(query @ key.T)
    lost = np.linalg.norm(x @ (u[:, 1:] * s[1:]) @ v[1:] @ x.T)
    least = np.linalg.norm(np.linalg.svd(x @ query @ key.T @ x.T, compute_uv=False)[1:])
    assert least < 0.99 * lost


def test_no_convex_mixture_has_the_variance_of_one_bandwidth_but_one_of_either_sign_may():
    """λᵀCλ ≥ (4πh̄²)^{−d_k/2}, C_lm = (2π(h_l² + h_m²))^{−d_k/2}, to first order: Jensen."""

    def excess(share, h, width):
        c = (2 * np.pi * np.add.outer(h**2, h**2)) ** (-width / 2)
        return share @ c @ share * (4 * np.pi * share @ h**2) ** (width / 2) - 1

    rng = np.random.default_rng(0)
    for _ in range(300):
        h, width = np.exp(rng.normal(size=3)), int(rng.integers(1, 9))
        assert excess(rng.dirichlet(np.ones(3)), h, width) > -1e-12
    assert excess(np.array([1.5, -0.5]), np.array([1.0, 1.2]), 1) < -0.02
