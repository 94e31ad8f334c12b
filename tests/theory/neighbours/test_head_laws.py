"""What an output leaves of its heads: null spaces, and conditional covariances by another form."""

import numpy as np
import pytest

from sims.theory.neighbours.heads import lost_share

pytestmark = pytest.mark.theory
N, HEADS, WIDTH = 5, 3, 2


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def mixing(gates, factors, output):
    """The map of unknowns V_h (r × d_k) to the output, at unit matrices, (n d, H r d_k)."""
    shape = len(factors), factors.shape[2], output.shape[1]
    columns = []
    for unit in np.eye(np.prod(shape)):
        heads = factors @ unit.reshape(shape)
        columns.append(np.sum(gates.T[:, :, None] * heads @ output, axis=0).ravel())
    return np.array(columns).T


@pytest.mark.parametrize("dimension", [2, 4, 6, 9])
def test_open_directions_are_a_null_space(rng, dimension):
    """Of a plain sum and a projection, with gates and without."""
    for output in (
        np.broadcast_to(rng.normal(size=(WIDTH, dimension)), (HEADS, WIDTH, dimension)),
        rng.normal(size=(HEADS, WIDTH, dimension)),
    ):
        rank = np.linalg.matrix_rank(output.reshape(-1, dimension))
        for gates in (np.ones((N, HEADS)), rng.uniform(0.1, 0.9, (N, HEADS))):
            whole = mixing(gates, np.broadcast_to(np.eye(N), (HEADS, N, N)), output)
            left = whole.shape[1] - np.linalg.matrix_rank(whole)
            assert left == N * (HEADS * WIDTH - rank)


@pytest.mark.parametrize("noise", [1e-3, 0.5])
def test_lost_share_is_the_covariance_given_the_output(rng, noise):
    """By the precision of all unknowns, I + MᵀM/s², whose inverse is their covariance given Z."""
    factors, gates = rng.normal(size=(HEADS, N, 2)), rng.uniform(0.1, 0.9, (N, HEADS))
    output = rng.normal(size=(HEADS, WIDTH, 4))
    whole = mixing(gates, factors, output)
    square = noise**2 * np.sum(whole**2) / len(whole)
    given = np.linalg.inv(np.eye(whole.shape[1]) + whole.T @ whole / square)
    units = np.eye(whole.shape[1]).reshape(-1, HEADS, 2, WIDTH)
    to_heads = (factors @ units).reshape(len(units), -1).T
    expected = np.trace(to_heads @ given @ to_heads.T) / np.sum(to_heads**2)
    assert lost_share(factors, gates, output, noise) == pytest.approx(expected, rel=1e-5)


def test_a_plain_sum_of_free_heads_loses_all_but_one_in_h(rng):
    """And nearly nothing where W_O has full row rank, or heads are common to tokens with gates."""
    free = np.broadcast_to(np.eye(N), (HEADS, N, N))
    common, gates = np.ones((HEADS, N, 1)), rng.uniform(0.1, 0.9, (N, HEADS))
    plain = np.broadcast_to(np.eye(WIDTH), (HEADS, WIDTH, WIDTH))
    ones = np.ones_like(gates)
    assert lost_share(free, ones, plain, 1e-6) == pytest.approx(1 - 1 / HEADS)
    assert lost_share(free, gates, plain, 1e-6) == pytest.approx(1 - 1 / HEADS)
    assert lost_share(common, ones, plain, 1e-6) == pytest.approx(1 - 1 / HEADS)
    assert lost_share(common, gates, plain, 1e-6) < 1e-6
    assert lost_share(free, ones, rng.normal(size=(HEADS, WIDTH, 6)), 1e-6) < 1e-6
