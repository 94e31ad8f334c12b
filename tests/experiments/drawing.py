"""Problems of an experiment with some of its law changed."""

from functools import cache

from sims.problem.law import Law
from sims.study.running import Run


@cache
def law_of(name):
    """Law of an experiment's problems."""
    return Run.load(name).spec.law


def fields_of(name, number=0, **changes):
    """What is drawn of one problem."""
    return Law(law_of(name) | changes).draw(3, number)
