"""Laws of problems: what is drawn, and that no draw moves another."""

import numpy as np
import pytest
from scipy import stats

from sims.problem.law import Law
from tests.by_hand import refused

FIELDS = {
    "keys": [64, 512],
    "share": {"uniform": [0.2, 0.6]},
    "bandwidth": {"loguniform": [0.1, 10]},
    "frames": "drawn",
    "noise": 1.5,
}


def test_fields_follow_their_laws():
    """Kolmogorov–Smirnov at 1e-4 each, and independent; values of a list are equally likely."""
    drawn = [Law(FIELDS).draw(3, number) for number in range(400)]
    share = [d["share"] for d in drawn]
    assert stats.kstest(share, stats.uniform(0.2, 0.4).cdf).pvalue > 1e-4
    logs = np.log10([d["bandwidth"] for d in drawn])
    assert stats.kstest(logs, stats.uniform(-1, 2).cdf).pvalue > 1e-4
    assert abs(np.corrcoef(share, logs)[0, 1]) < 4 / 20  # 1/√400 is its standard error
    assert abs(sum(d["keys"] == 64 for d in drawn) - 200) < 4 * 10
    assert len({d["frames"] for d in drawn}) == 400
    assert {d["noise"] for d in drawn} == {1.5}


def test_a_rejected_draw_and_a_new_field_move_no_other():
    law = Law(FIELDS)
    again = law.draw(3, 1, attempt=1)
    assert again["share"] != law.draw(3, 1)["share"]
    assert law.draw(3, 2) == Law(FIELDS).draw(3, 2)
    more = Law({"text": "in words", "first": {"uniform": [0, 1]}, **FIELDS}).draw(3, 2)
    assert {k: v for k, v in more.items() if k != "first"} == law.draw(3, 2)


@pytest.mark.parametrize(
    "how", [[], {"uniform": [2, 1]}, {"loguniform": [0, 1]}, {"normal": [0, 1]}, {"uniform": "x"}]
)
def test_what_is_no_law_is_refused(how):
    with refused(r"law\.share"):
        Law({"share": how})
