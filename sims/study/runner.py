"""A run of an experiment and its steps as plain calls, from Python or the command line."""

from dataclasses import dataclass
from pathlib import Path

from sims.judgement.answers import Answer
from sims.steps.judge import judge
from sims.steps.plot import plot
from sims.steps.predict import predict
from sims.steps.rehearse import rehearse
from sims.steps.simulate import simulate
from sims.steps.tabulate import tabulate
from sims.study.results import Results
from sims.study.running import Run
from sims.study.stored import results_of

__all__ = [
    "Outcome",
    "judge",
    "plot",
    "predict",
    "rehearse",
    "results_of",
    "run",
    "simulate",
    "tabulate",
]


@dataclass(frozen=True)
class Outcome:
    """Results and answers of one experiment's run.

    Attributes:
        run: the run at its fidelity.
        results: theory and simulation.
        answers: one per question, without Holm's adjustment, which the ledger adds.
        folder: folder of simulation.nc, theory.nc, answers.json, figures and caption.md.
    """

    run: Run
    results: Results
    answers: list[Answer]
    folder: Path

    def __repr__(self) -> str:
        return f"Outcome({self.results!r}, {len(self.answers)} answers, {str(self.folder)!r})"


def run(
    name: str | Path,
    fidelity: str = "standard",
    *,
    seed_offset: int = 0,
    folder: str | Path | None = None,
    figure: bool = True,
    progress: bool = False,
    processes: int = 1,
    allow_code: bool = False,
) -> Outcome:
    """Outcome of one experiment: theory, simulation, answers and figure. Finished units are kept.

    Args:
        name: name of the experiment, or its folder.
        fidelity: smoke, standard or paper.
        seed_offset: k ≥ 0, added to the seeds: the same experiment with other draws.
        folder: folder of the results; None is results/FIDELITY/NAME.
        figure: whether to draw it.
        progress: show progress on stderr.
        processes: number of processes for units of plain Python; one more computes theory.
        allow_code: consent to run the code of a folder outside ``experiments``.

    Raises:
        InputError: the experiment, its file or its modules cannot be used.
    """
    opened = Run.load(name, fidelity, seed_offset, Path(folder) if folder else None, allow_code)
    answers = opened.complete(progress, processes)
    if figure:
        opened.figure()
    return Outcome(opened, opened.results, answers, opened.home)
