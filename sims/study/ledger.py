"""The ledger: the verdicts of all experiments of a run, adjusted for each paper's tested claims."""

from collections import Counter
from pathlib import Path

from sims.errors import InputError
from sims.judgement import Verdict, adjust, read_ledger, write_verdicts
from sims.kinds import is_tested
from sims.study.experiment import experiments, load_experiment


def gather(fidelity: str, output: Path) -> list[Verdict]:
    """Adjust the verdicts of all experiments that have been judged (Holm), and write the ledger.

    Claims that have not been judged count in the adjustment: a part of a run must not have easier
    p-values than the whole.

    Args:
        fidelity: its name.
        output: the ledger's file, beside the folders of experiments.

    Raises:
        InputError: nothing has been judged, or a file of verdicts cannot be believed.
    """
    verdicts = [
        verdict
        for name in experiments()
        if (path := output.parent / name / "verdicts.json").exists()
        for verdict in read_ledger(path, f"verdicts.json of {name} at {fidelity}")
    ]
    if not verdicts:
        raise InputError(str(output.parent), "no verdicts", "a run: snakemake")
    ledger = adjust(verdicts, claims_by_paper())
    write_verdicts(ledger, output, f"ledger.json of {fidelity}")
    return ledger


def claims_by_paper() -> dict[str, int]:
    """How many tested claims the experiment files here make, by paper: the sizes of families."""
    loaded = (load_experiment(name).claims for name in experiments())
    return dict(Counter(c.paper for claims in loaded for c in claims if is_tested(c.kind)))
