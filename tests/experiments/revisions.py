"""The numbers of every question's effect on planted data, by its declared revision.

``python -m tests.experiments.revisions`` writes revisions.json anew. An effect whose numbers change
has to raise its ``revision`` in experiment.yaml, which redraws the problems.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

from sims.base.places import experiments
from sims.judgement.effects import Effects
from sims.study import runner
from sims.study.running import Run
from tests.experiments.planted import planted

RECORD = Path(__file__).with_name("revisions.json")


def numbers_of(experiment: Run, folder: Path) -> dict[str, dict]:
    """Revision and numbers of each question's effect, from planted results of a finished run."""
    made = planted(experiment, runner.results_of(experiment, folder))
    if made is None:
        return {}
    results, expected = made
    effects = experiment.study.effects(results)
    asked = [question for question in experiment.spec.questions if question.effect in expected]
    return {
        question.effect: {
            "revision": question.revision,
            "kind": effects[question.effect].kind,
            "value": _rounded(effects[question.effect].value),
            "predicted": _rounded(_predicted(effects[question.effect])),
        }
        for question in asked
    }


def _predicted(effect: Effects) -> np.ndarray:
    return np.empty(0) if effect.predicted is None else effect.predicted


def _rounded(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.8g}") if np.isfinite(v) else None for v in np.asarray(values, float).flat]


def main() -> None:
    """Write the record of all experiments."""
    from tests.experiments.test_battery import tiny

    record = {}
    for name in experiments():
        with tempfile.TemporaryDirectory() as folder:
            experiment = tiny(name)
            runner.simulate(experiment, Path(folder, "simulation.nc"))
            runner.predict(experiment, Path(folder, "theory.nc"))
            if numbers := numbers_of(experiment, Path(folder)):
                record[name] = numbers
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
