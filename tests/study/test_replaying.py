"""A row that is computed again, beside the row of the ledger."""

from dataclasses import replace

import numpy as np
import pytest

from sims.study.replaying import Replay
from tests.figures.test_figures import SUPPORTED

ROW = replace(SUPPORTED, verdict="inconclusive", effect=0.02, interval=(-0.04, 0.08))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 0.0),
        ({"effect": 0.03}, 0.125),
        ({"interval": (-0.04, 0.1)}, 0.2),
        ({"effect": 0.03, "interval": (-0.08, 0.08)}, 0.5),
        ({"interval": None}, np.inf),
    ],
)
def test_the_difference_is_the_largest_as_a_share_of_the_largest_number(changes, expected):
    """Of effect and both ends of the interval, of which one may be as it was."""
    for pair in ((ROW, replace(ROW, **changes)), (replace(ROW, **changes), ROW)):
        assert Replay(*pair, notes=[]).difference() == pytest.approx(expected)


def test_rows_without_numbers_are_alike():
    none = replace(ROW, effect=None, interval=None)
    assert Replay(none, none, notes=[]).difference() == 0
