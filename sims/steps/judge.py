"""Step ``judge``: answers to an experiment's questions."""

from pathlib import Path

from sims.judgement.answers import Answer, write_answers
from sims.study.judge import answers_of
from sims.study.running import Run
from sims.study.stored import read_panels


def judge(run: Run, output: Path) -> list[Answer]:
    """Answers to all questions of an experiment, written as JSON next to the table they are of."""
    panels = read_panels(run, output.parent)
    answers = answers_of(panels.table, run.spec, panels.failures)
    write_answers(answers, output, f"answers.json of {run.identity}")
    return answers
