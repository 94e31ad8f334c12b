"""What had been seen before: the rows that say so, counted, in a sentence."""

from collections.abc import Mapping, Sequence

from sims.judgement import Verdict
from sims.study.schema import ExperimentSpec


def seen(ledger: Sequence[Verdict], specs: Mapping[str, ExperimentSpec]) -> str:
    """How many rows had been seen in part before what decides them was fixed, as a sentence.

    Args:
        ledger: the verdicts.
        specs: experiment files by name; rows of experiments without one are not counted.

    Returns:
        "" if there are none.
    """
    marked = {
        (name, claim.paper, claim.id, claim.regime)
        for name, spec in specs.items()
        for claim in spec.claims
        if claim.seen_before
    }
    count = sum((v.experiment, v.paper, v.claim, v.regime) in marked for v in ledger)
    if not count:
        return ""
    return (
        f"{count} of these rows had been seen, in part, before their margin, points or wording "
        "were fixed; each says so."
    )
