"""Bounds on a bias come off the room either way, and replicates do not lower them."""

import pytest

from sims.judgement import bounded_equivalence, equivalence

RUN = {"level": 0.95, "batches": 64, "replicates": 512, "margin": 0.1}


@pytest.mark.parametrize(
    ("effect", "bound", "verdict"),
    [
        (0.02, 0.0, "supported"),
        (0.02, 0.06, "supported"),
        (0.02, 0.09, "inconclusive"),
        (0.02, 0.5, "inconclusive"),  # not even when the bound alone is above the margin
        (-0.2, 0.05, "refuted"),
        (-0.2, 0.12, "inconclusive"),
    ],
)
def test_bounds_come_off_the_room(effect, bound, verdict):
    found = bounded_equivalence([0.0, effect], 1e-4, [0.0, bound], **RUN)
    assert found.verdict == verdict
    if bound > 0.1:
        assert not found.needs


def test_without_bounds_it_is_equivalence():
    for effects in ([0.01, -0.02], [0.01, -0.3], [0.01, 0.0995]):
        errors, points = [1e-3, 2e-3], ["a", "b"]
        plain = equivalence(effects, errors, points=points, **RUN)
        assert bounded_equivalence(effects, errors, [0.0, 0.0], points=points, **RUN) == plain
