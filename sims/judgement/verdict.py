"""The verdict: one row of the ledger, and the ledger's file."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from sims.errors import InputError
from sims.files import write_text
from sims.judgement.settle import VERDICTS, Finding
from sims.papers import MAIN

if TYPE_CHECKING:
    from sims.study.schema import ClaimSpec


@dataclass(frozen=True)
class Verdict:
    """What a claim came to, in one regime of one experiment.

    Attributes:
        claim: its id.
        experiment: name of the experiment.
        regime: where the claim was tested.
        statement: the claim made precise.
        verdict: supported, refuted or inconclusive.
        effect: the estimate that decided (the worst one of several), None if there is none.
        interval: the confidence interval that decided, valid whenever sampling stopped: of that
            point alone if the claim is supported (all points must be inside), simultaneous over
            all points if not. None if there is none.
        margin: what the effect was held against, fixed before the run.
        level: confidence of the verdict by itself.
        replicates: Monte Carlo replicates behind it (the fewest of its points); 0: none needed.
        reason: why, in a sentence; if inconclusive, what would decide it.
        p_value: probability of a wrong verdict at most this, by itself: the least 1 − level at
            which the verdict would still be given (of the nearer one, if inconclusive).
        adjusted: the same for all of the ledger's verdicts on claims of its paper together (Holm),
            None before.
        needs: if inconclusive, the points that need more batches, and how many in all.
        paper: arXiv id of the paper that lists the claim.
        kind: what kind of statement the claim is, None if its experiment does not say.
        over: the populations that it is about, None if its experiment does not say.
        contract: hash of what is fixed before a run (:mod:`sims.study.contract`), as it was when
            the verdict was given; None if it was not recorded.
        edited: whether that hash differs from the one that the simulation began with.
    """

    claim: str
    experiment: str
    regime: str
    statement: str
    verdict: str
    effect: float | None
    interval: tuple[float, float] | None
    margin: float
    level: float
    replicates: int
    reason: str
    p_value: float | None = None
    adjusted: float | None = None
    needs: dict[str, float] = field(default_factory=dict)
    paper: str = MAIN
    kind: str | None = None
    over: list[str] | None = None
    contract: str | None = None
    edited: bool = False

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise InputError("verdict", self.verdict, ", ".join(VERDICTS))
        numbers = [self.effect, *(self.interval or (None, None))]
        known = all(x is not None and math.isfinite(x) for x in numbers)
        p = self.p_value
        if p is not None and not 0 <= p <= 1:
            raise InputError(f"p-value of {self.claim}", p, "0 to 1")
        if self.verdict != "inconclusive" and not known:
            raise InputError(
                f"verdict of {self.claim}", self.verdict, "inconclusive (numbers are missing)"
            )

    @classmethod
    def of(cls, claim: "ClaimSpec", experiment: str, finding: Finding) -> "Verdict":
        """The verdict on a claim of the experiment of that name, from what its test came to."""
        return cls(
            claim=claim.id,
            experiment=experiment,
            regime=claim.regime,
            statement=claim.statement,
            paper=claim.paper,
            **{f.name: getattr(finding, f.name) for f in fields(finding)},
        )


def write_verdicts(verdicts: Iterable[Verdict], path: str | Path) -> None:
    """Write verdicts as a JSON list, whole or not at all."""
    rows = [asdict(verdict) for verdict in verdicts]
    write_text(json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n", path)


def read_ledger(path: str | Path) -> list[Verdict]:
    """Read a ledger, or one experiment's verdicts.

    A row without a ``paper`` is of the main one: the first ledgers had no other.

    Raises:
        InputError: the file is not there or is no ledger.
    """
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))
        return [
            Verdict(**{**row, "interval": row["interval"] and tuple(row["interval"])})
            for row in rows
        ]
    except OSError as error:
        raise InputError(str(path), error.strerror, "a ledger written by a run") from None
    except (ValueError, TypeError, KeyError):
        raise InputError(str(path), "something else", "a ledger: a JSON list of verdicts") from None
