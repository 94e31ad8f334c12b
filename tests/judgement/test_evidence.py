"""Evidence is checked when made; bounds come off the room, and replicates do not lower them."""

import numpy as np
import pytest

from sims.errors import InputError
from sims.judgement import Evidence, bound, equivalence, ordering

CLAIMED = {"margin": 0.1, "level": 0.95}


@pytest.mark.parametrize(
    ("effect", "slack", "verdict"),
    [
        (0.02, 0.0, "supported"),
        (0.02, 0.06, "supported"),
        (0.02, 0.09, "inconclusive"),
        (0.02, 0.5, "inconclusive"),  # not even when the bound alone is above the margin
        (-0.2, 0.05, "refuted"),
        (-0.2, 0.12, "inconclusive"),
    ],
)
def test_bounds_come_off_the_room(effect, slack, verdict):
    bounds = [0.0, slack]
    found = equivalence(Evidence([0.0, effect], 1e-4, 64, 512, bounds=bounds), **CLAIMED)
    assert found.verdict == verdict
    if slack > 0.1:
        assert not found.needs
    # One-sided claims have the same room on their one side.
    size = abs(effect)
    for decide, one in ((bound, size), (ordering, 0.2 - size)):
        evidence = Evidence([one], 1e-4, 64, bounds=slack)
        assert decide(evidence, **CLAIMED).verdict == verdict


def test_an_effect_outside_whatever_its_bound_asks_for_more_batches():
    """Outside by 0.1 with the bound in its favour: batches can tell, wherever in it it lies."""
    options = {"margin": 1.0, "level": 0.999}
    evidence = Evidence(
        [1.15, 0.0], [0.05, 0.05], [64, 64], 64, (("a",), ("b",)), True, [0.05, 0.0]
    )
    found = equivalence(evidence, **options)
    assert found.verdict == "inconclusive"
    assert found.needs.keys() == {"a"}
    assert "would decide" in found.reason
    # Outside by 0.1 with the bound against it alone: no batches tell.
    evidence = Evidence(
        [1.05, 0.0], [0.001, 0.05], [64, 64], 64, (("a",), ("b",)), True, [0.1, 0.0]
    )
    found = equivalence(evidence, **options)
    assert (found.verdict, found.needs) == ("inconclusive", {})
    assert "either side of the margin" in found.reason


def test_scalars_stand_for_all_effects():
    evidence = Evidence([1.0, 2.0, 3.0], 0.1, 16, points=["a", ("b", "c"), "a"])
    assert evidence.errors.tolist() == [0.1] * 3
    assert (evidence.fixed.dtype, evidence.bounds.shape) == (bool, (3,))
    assert evidence.points == (("a",), ("b", "c"), ("a",))
    assert evidence.all_points == ("a", "b", "c")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"errors": np.ones(2)}, "evidence"),
        ({"batches": np.inf}, "errors"),
        ({"bounds": -0.1}, "bounds"),
        ({"points": ["a"]}, "points"),
    ],
)
def test_bad_input_is_named(change, field):
    with pytest.raises(InputError, match=rf"^{field}: "):
        Evidence(**({"effects": [1.0, 2.0, 3.0], "errors": 0.1, "batches": 8} | change))
