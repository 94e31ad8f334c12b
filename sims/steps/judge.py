"""Step ``judge``: answers to an experiment's questions."""

from pathlib import Path

from sims.judgement.answers import Answer, write_answers
from sims.study.judge import answers_of, tabulate, write_table
from sims.study.running import Run
from sims.study.stored import results_of


def judge(run: Run, output: Path) -> list[Answer]:
    """Answers to all questions of an experiment, written as JSON next to the table they are of."""
    table = tabulate(run, results_of(run, output.parent))
    write_table(table, run, output.parent)
    answers = answers_of(table, run.spec)
    write_answers(answers, output, f"answers.json of {run.identity}")
    return answers
