"""Degrees of freedom of heads: against null spaces and tangent spaces of drawn matrices."""

import numpy as np
import pytest

from sims.theory.neighbours.heads import (
    gate_share,
    open_alone,
    open_jointly,
    open_parametric,
    open_shared_content,
    output_rank,
    parametric_rank,
)

pytestmark = pytest.mark.theory
N = 5


def null_space(matrix):
    """Columns that span the kernel of a matrix (rows: outputs)."""
    _, values, right = np.linalg.svd(np.atleast_2d(matrix))
    return right[(values > 1e-10).sum() :].T


def outputs(rng, kind, heads, width, dimension):
    one = rng.normal(size=(1 if kind == "repeated" else heads, width, dimension))
    return np.broadcast_to(one, (heads, width, dimension)).reshape(heads * width, dimension)


@pytest.mark.parametrize("kind", ["generic", "repeated"])
@pytest.mark.parametrize(("heads", "width"), [(1, 3), (2, 1), (2, 3), (4, 2)])
def test_joint_and_single_heads_by_null_spaces(kind, heads, width):
    rng = np.random.default_rng(0)
    for dimension in (width, width + 1, heads * width, 2 * heads * width):
        w = outputs(rng, kind, heads, width, dimension)
        kernel = null_space(np.kron(np.eye(N), w.T))
        rank = output_rank(kind, heads, width, dimension)
        assert kernel.shape[1] == open_jointly(N, heads, width, rank)
        first = kernel.reshape(N, heads, width, -1)[:, 0].reshape(N * width, -1)
        others = output_rank(kind, heads - 1, width, dimension) if heads > 1 else 0
        found = np.linalg.matrix_rank(first) if first.size else 0
        assert found == open_alone(N, width, rank, others)


def rank_of_map(function, *shapes):
    """Rank of a linear function of arrays, by its values at unit arrays."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    columns = []
    for unit in np.eye(sum(sizes)):
        parts = np.split(unit, np.cumsum(sizes)[:-1])
        arrays = (part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
        columns.append(function(*arrays).ravel())
    return int(np.linalg.matrix_rank(np.array(columns)))


@pytest.mark.parametrize("heads", [2, 3, 7])
def test_gates_with_shared_content(heads):
    rng, width = np.random.default_rng(2), 2
    for gates in (rng.random((N, heads)), np.ones((N, heads))):
        seen = rank_of_map(lambda y, g=gates: np.einsum("nh,hk->nk", g, y), (heads, width))
        rank = np.linalg.matrix_rank(gates)
        assert heads * width - seen == open_shared_content(heads, width, rank)


@pytest.mark.parametrize("attention", ["generic", "equal", "uniform"])
@pytest.mark.parametrize("gated", [False, True])
def test_parametric_heads(attention, gated):
    rng, heads, width = np.random.default_rng(3), 3, 2
    for dimension in (2, 4):
        x = rng.normal(size=(N, dimension))
        one = rng.random((1, N, N))
        many, even = rng.random((heads, N, N)), np.ones((1, N, N))
        a = np.broadcast_to({"generic": many, "equal": one, "uniform": even}[attention], many.shape)
        gates = rng.random((N, heads)) if gated else np.ones((N, heads))
        seen = rank_of_map(
            lambda v, a=a, g=gates, x=x: np.einsum("nh,hnm,md,hdk->nk", g, a, x, v),
            (heads, dimension, width),
        )
        rank = parametric_rank(attention, gated, N, heads, dimension)
        left = heads * dimension * width - seen
        assert left == open_parametric(heads, dimension, width, rank)


def test_shares_of_gates_count_arrays():
    heads, width = 12, 64
    dimension = heads * width
    output = np.zeros((dimension, dimension)).size
    assert gate_share(heads, dimension) == np.zeros((dimension, heads)).size / output == 1 / width
    table = np.zeros((1024, heads)).size / output
    assert gate_share(heads, dimension, positions=1024) == pytest.approx(table)
