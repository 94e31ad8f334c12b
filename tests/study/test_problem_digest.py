"""Both files of an experiment are of the same problems, whatever code stands around these."""

from dataclasses import dataclass

import numpy as np

from sims.base.identity import digest, rounded_digest


def problem_class(factor):
    """A class of problems, as a file has it before and after an edit of a method."""

    @dataclass(frozen=True)
    class Problem:
        width: float
        frames: np.ndarray

        def area(self):
            return factor * self.width

    return Problem


def test_an_edit_beside_a_problem_leaves_its_digest():
    """Whoever edits a figure or a sampler between the two methods has the same problem."""
    before, after = problem_class(1)(0.5, np.eye(2)), problem_class(2)(0.5, np.eye(2))
    assert digest(before) != digest(after)
    assert rounded_digest(before) == rounded_digest(after)
    assert rounded_digest(before) != rounded_digest(problem_class(1)(0.6, np.eye(2)))
