"""Agreement of the answers of two runs."""

from types import SimpleNamespace

import numpy as np
import pytest

from sims.judgement.agreement import agreement
from sims.judgement.summaries import Mean, Share
from sims.judgement.tally import tally


def share_of(holds):
    return Share(problems=100, simulated=tally(np.repeat([1.0, -1.0], [holds, 100 - holds])))


def mean_of(middle):
    return Mean(problems=9, interval=(middle - 0.1, middle + 0.1))


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (mean_of(0.5), mean_of(0.63), 1),
        (mean_of(0.5), mean_of(0.65), 0),
        (mean_of(0.5), mean_of(0.35), 0),
        (share_of(90), share_of(85), 1),
        (share_of(90), share_of(70), 0),
    ],
)
def test_runs_agree_within_the_root_of_the_sum_of_squared_half_widths(one, other, agree):
    """Tolerances of half width 0.1 agree up to 0.141; an answer of one run is not counted."""
    first, second = (SimpleNamespace(id="a", result=result) for result in (one, other))
    found = agreement([first, SimpleNamespace(id="gone", result=one)], [second])
    assert (len(found.agreeing), len(found.differing)) == (agree, 1 - agree)
    if isinstance(one, Mean):
        assert found.visible == pytest.approx(0.02**0.5 / 0.5 * 2.8016 / 1.96, rel=1e-3)
