"""Step ``predict``: theory of an experiment's problems."""

import sys
from pathlib import Path

from sims.study.code import record_imports
from sims.study.running import Run
from sims.study.stored import write_method


def predict(run: Run, output: Path) -> None:
    """Predict the problems of an experiment, and write theory's terms into one file."""
    before = {*sys.modules}
    study = run.study
    study.keep_draws(output.parent)
    with run.code_errors():
        predictions = study.predictions()
        digests = study.problem_digests()
    coordinates = study.predicted_coordinates()
    write_method(run, "theory", predictions, coordinates, digests, output)
    record_imports("predict", study.declared, output.parent, before)
