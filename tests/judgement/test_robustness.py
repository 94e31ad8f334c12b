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


def test_a_word_holds_where_most_cells_have_it():
    found = robustness(share_of(85), cells_of(85, 80, 88, 82))
    assert (found.cells, found.same, found.contradicting, found.holds) == (4, 4, 0, True)
    # Two cells have the next word: their intervals do not contradict, but half is less than most.
    found = robustness(share_of(85), cells_of(85, 60, 88, 60))
    assert (found.same, found.contradicting, found.holds, found.choice) == (2, 0, False, "maps")


def test_the_choice_that_changes_the_share_is_named():
    """Two of four cells, those with two maps, have another word than the whole."""
    found = robustness(share_of(85), cells_of(85, 20, 88, 24))
    assert (found.contradicting, found.holds, found.choice) == (2, False, "maps")
    assert found.shares == {"one": 0.865, "two": 0.22}
    assert "2 of 4 specifications have the same word, 2 contradict it" in found.in_words()


def test_cells_of_few_problems_say_nothing():
    assert robustness(share_of(85), cells_of(10, 1, 10, 1, problems=19)) is None
    found = robustness(share_of(85), cells_of(34, 34, 34, 34, problems=40))
    assert (found.cells, found.holds) == (0, False)
