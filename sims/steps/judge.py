"""Step ``judge``: answers to an experiment's questions."""

from pathlib import Path

from sims.judgement.answers import Answer, write_answers
from sims.study.judge import answer_questions
from sims.study.running import Run
from sims.study.stored import results_of


def judge(run: Run, output: Path) -> list[Answer]:
    """Answers to all questions of an experiment, also written as JSON next to its results."""
    answers = answer_questions(run, results_of(run, output.parent))
    write_answers(answers, output, f"answers.json of {run.identity}")
    return answers
