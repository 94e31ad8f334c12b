"""Bounds of the angle series: the aligned overlap that divides, and the queries left out."""

import numpy as np
import pytest

from sims.theory.first_order.angle_series.rules import Nodes
from sims.theory.first_order.angle_series.series import AngleSeries, Queries, _aligned

pytestmark = pytest.mark.theory


@pytest.mark.parametrize("cosine", [0.0, 0.5, 0.9])
def test_the_laws_bound_holds_whatever_the_edge_adds_to_either_overlap(cosine):
    """Coefficients 1, 0.5 and 0.25 of an aligned 2: 0.25 is missing, and an edge is 0.02.

    The overlap may be too small by both, and the aligned one by the edge; their quotient is then
    off by the first over 2, and by its own share 0.01 of the second, to first order.
    """
    series = AngleSeries(np.array([1.0, 0.5, 0.25]), 2.0, 0.02)
    value, bound = series.correlation([cosine])
    square = cosine**2
    overlap = 1 + 0.5 * square + 0.25 * square**2
    assert value == pytest.approx(overlap / 2)
    assert bound == pytest.approx((0.25 * square**3 + 0.02) / 2 + overlap / 2 * 0.01, rel=1e-6)
    most, least = (overlap + 0.25 * square**3 + 0.02) / 2, overlap / 2.02
    assert least >= value - bound
    assert most <= value + bound


@pytest.mark.parametrize("fall", [0.05, 0.3])
def test_the_edge_is_what_a_geometric_tail_beyond_the_last_query_adds(fall):
    """Parts e^{−f·i} add up to q/(1 − q) of the last one beyond it, q = e^{−f}."""
    log = -fall * np.arange(40)
    nodes = Nodes(*np.zeros((3, 40, 1)), log / 3)
    total, edge = _aligned(nodes, Queries(np.arange(40.0), 2 * log / 3))
    last, q = np.exp(-fall * 39), np.exp(-fall)
    tail = last * q / (1 - q)
    assert total == pytest.approx((1 - q**40) / (1 - q))
    assert tail <= edge <= tail / q
