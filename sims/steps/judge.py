"""Step ``judge``: answers to an experiment's questions."""

from pathlib import Path

from sims.judgement.answers import Answer, write_answers
from sims.study.experiment import Experiment
from sims.study.judge import answers_of, tabulate, write_table
from sims.study.stored import results_of


def judge(experiment: Experiment, output: Path) -> list[Answer]:
    """Answers to all questions of an experiment, written as JSON next to the table they are of."""
    table = tabulate(experiment, results_of(experiment, output.parent))
    write_table(table, experiment, output.parent)
    answers = answers_of(table, experiment.spec)
    write_answers(answers, output, f"answers.json of {experiment.identity}")
    return answers
