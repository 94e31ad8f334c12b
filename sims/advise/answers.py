"""Published answers that support a piece of advice."""

from dataclasses import dataclass

from sims.base.places import place
from sims.study.ledger import read_run

QUESTIONS = {
    "data": (("allocation", "allocation"), ("house", "not-heads-alone"), ("house", "adding-heads")),
    "n": (("allocation", "allocation"), ("allocation", "dk-log")),
    "context": (
        ("temperature", "kept-temperature-softmax"),
        ("temperature", "kept-temperature"),
    ),
}
"""Kind of advice to the experiment and id of its questions."""


@dataclass(frozen=True)
class Rests:
    """A published question and its answer.

    Attributes:
        experiment: its experiment.
        id: id of the question.
        question: text of the question; its id if it is not published.
        answer: the published answer, or "not published".
    """

    experiment: str
    id: str
    question: str
    answer: str


def rests_on(kind: str) -> list[Rests]:
    """Questions that support a kind of advice (``data``, ``n``, ``context``)."""
    published = {answer.id: answer for answer in read_run(place("results/published"))}
    return [_rests(name, id, published) for name, id in QUESTIONS[kind]]


def _rests(name: str, id: str, published: dict) -> Rests:
    if (answer := published.get(id)) is not None:
        return Rests(name, id, answer.question, f"{answer.spoken()}: {answer.result.headline()}")
    return Rests(name, id, id, "not published")
