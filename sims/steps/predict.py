"""Step ``predict``: theory of an experiment's problems."""

import sys
from pathlib import Path

from sims.study.code import record_imports
from sims.study.experiment import Experiment
from sims.study.loading import load_study
from sims.study.stored import write_method


def predict(experiment: Experiment, output: Path) -> None:
    """Predict the problems of an experiment, and write theory's terms into one file."""
    before = {*sys.modules}
    study = load_study(experiment)
    with experiment.code_errors():
        predictions = study.predictions()
        digests = study.problem_digests()
    coordinates = study.predicted_coordinates()
    write_method(experiment, "theory", predictions, coordinates, digests, output)
    record_imports("predict", experiment.folder, output.parent, before)
