"""The ledger: the verdicts of all experiments of a run, adjusted for all claims of each paper."""

from collections import Counter
from pathlib import Path

from sims.errors import InputError
from sims.judgement import Verdict, adjust, read_ledger, write_verdicts
from sims.study.experiment import experiments, load_experiment


def gather(folder: Path, output: Path) -> list[Verdict]:
    """Adjust the verdicts of all experiments that have been judged (Holm), and write the ledger.

    Claims that have not been judged count in the adjustment: a part of a run must not have easier
    p-values than the whole.

    Args:
        folder: results of one fidelity, with NAME/verdicts.json.
        output: the ledger's file.

    Raises:
        InputError: nothing has been judged.
    """
    files = [folder / name / "verdicts.json" for name in experiments()]
    verdicts = [v for file in files if file.is_file() for v in read_ledger(file)]
    if not verdicts:
        raise InputError(str(folder), "no verdicts", "a run: sims judge, or snakemake")
    ledger = adjust(verdicts, claims_by_paper())
    write_verdicts(ledger, output)
    return ledger


def claims_by_paper() -> dict[str, int]:
    """How many claims the experiment files of this folder make, by the paper they are about."""
    loaded = [load_experiment(name) for name in experiments()]
    return dict(Counter(claim.paper for experiment in loaded for claim in experiment.claims))
