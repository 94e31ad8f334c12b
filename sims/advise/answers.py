"""The published answers that a piece of advice rests on."""

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
"""Experiment and id of the questions, by kind of advice."""


@dataclass(frozen=True)
class Rests:
    """A question of the page of answers.

    Attributes:
        experiment: that asks it.
        id: id of the question.
        question: in one line; the id of one that is not published.
        answer: as published, or "not published".
    """

    experiment: str
    id: str
    question: str
    answer: str


def rests_on(kind: str) -> list[Rests]:
    """The questions that advice of a kind (``data``, ``n``, ``context``) rests on."""
    published = {answer.id: answer for answer in read_run(place("results/published"))}
    return [_rests(name, id, published) for name, id in QUESTIONS[kind]]


def _rests(name: str, id: str, published: dict) -> Rests:
    if (answer := published.get(id)) is not None:
        return Rests(name, id, answer.question, f"{answer.spoken()}: {answer.result.headline()}")
    return Rests(name, id, id, "not published")
