"""Step ``judge``: answers to an experiment's questions."""

from pathlib import Path

from sims.judgement.answers import Answer, write_answers
from sims.study.experiment import Experiment
from sims.study.judge import answer_questions
from sims.study.stored import results_of


def judge(experiment: Experiment, output: Path) -> list[Answer]:
    """Answers to all questions of an experiment, also written as JSON next to its results."""
    answers = answer_questions(experiment, results_of(experiment, output.parent))
    write_answers(answers, output, f"answers.json of {experiment.identity}")
    return answers
