"""An answer's word over specifications: where a choice decides, it is named."""

import numpy as np

from sims.judgement.robustness import Cell, robustness
from sims.judgement.summaries import Share
from sims.judgement.tally import tally

CHOICES = [("given", "one"), ("given", "two"), ("in law", "one"), ("in law", "two")]


def share_of(holds, problems=100):
    calls = np.repeat([1.0, -1.0], [holds, problems - holds])
    return Share(problems=problems, simulated=tally(calls))


def cells_of(*holds, problems=100):
    return [
        Cell({"heads": heads, "maps": maps}, share_of(count, problems))
        for (heads, maps), count in zip(CHOICES, holds, strict=True)
    ]


def test_cells_that_have_the_word_are_counted():
    found = robustness(share_of(85), cells_of(85, 80, 88, 82))
    assert (found.cells, found.same, found.contradicting) == (4, 4, 0)
    # Two cells have the next word, which their intervals and that of the answer both allow.
    found = robustness(share_of(85), cells_of(85, 60, 88, 60))
    assert (found.same, found.contradicting, found.choice) == (2, 0, "maps")


def test_the_choice_that_changes_the_share_is_named():
    """Two of four cells, those with two maps, have another word than the whole."""
    found = robustness(share_of(85), cells_of(85, 20, 88, 24))
    assert (found.contradicting, found.choice) == (2, "maps")
    assert found.shares == {"one": 0.865, "two": 0.22}
    assert "same in 2 of 4 combinations, and contradicted in 2" in found.in_words()


def test_cells_of_few_problems_say_nothing():
    assert robustness(share_of(85), cells_of(10, 1, 10, 1, problems=19)) is None
    found = robustness(share_of(85), cells_of(34, 34, 34, 34, problems=40))
    assert found.cells == 0
    assert found.in_words().startswith("no combination of choices has enough problems")
