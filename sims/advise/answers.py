"""Published answers that support a piece of advice."""

from dataclasses import dataclass

from sims.judgement.answers import Answer
from sims.study.ledger import known_answers

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
    """A question and its answer.

    Attributes:
        experiment: its experiment.
        id: id of the question.
        question: text of the question; its id if it has no answer.
        answer: the answer, or "not published".
    """

    experiment: str
    id: str
    question: str
    answer: str


def rests_on(kind: str) -> list[Rests]:
    """Questions that support a kind of advice (``data``, ``n``, ``context``).

    Their answers are those of a standard run in this directory, or else published.
    """
    answers: dict[str, Answer] = {}
    for group in known_answers("standard").values():
        answers |= {answer.id: answer for answer in group}
    rests = []
    for name, id in QUESTIONS[kind]:
        question = id
        text = "not published"
        if answer := answers.get(id):
            question = answer.question
            text = f"{answer.spoken()}: {answer.result.headline()}"
        rests.append(Rests(name, id, question, text))
    return rests
