"""The verdict: one row of the ledger; the ledger's file, and Holm's adjustment over it."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import ConfigDict, RootModel

from sims.errors import InputError
from sims.files import read_json, write_json
from sims.judgement.settle import Answer, Finding
from sims.kinds import is_tested
from sims.papers import MAIN
from sims.validation import parse

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
        interval: the confidence interval that decided, valid whenever sampling stopped, wider on
            either side by the bound on what is not random: of that point alone if the claim is
            supported (all points must be inside), simultaneous over all points if not. None if
            there is none.
        margin: what the effect was held against, fixed before the run.
        level: confidence of the verdict by itself.
        replicates: Monte Carlo replicates behind it (the fewest of its points); 0: none needed.
        reason: why, in a sentence; if inconclusive, what would decide it.
        p_value: probability of a wrong verdict at most this, by itself: the least 1 − level at
            which the verdict would still be given (of the nearer one, if inconclusive).
        adjusted: the same for all tested claims of its paper together (Holm); None before, and for
            kinds that are not tested.
        needs: if inconclusive, the points that need more batches, and how many in all.
        paper: arXiv id of the paper that lists the claim.
        kind: one of :data:`~sims.kinds.KINDS`; None in ledgers of before there were any.
        over: those of :data:`~sims.kinds.POPULATIONS` that are drawn anew between the
            batches, which is what the interval speaks of; None likewise.
        contract: hash of what is fixed before a run (``Experiment.contract``), as it was when
            the verdict was given; None if it was not recorded.
        edited: whether that hash differs from the one that the simulation began with.
        results: SHA-256 of simulation.nc and theory.nc, one after the other, that were judged.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    claim: str
    experiment: str
    regime: str
    statement: str
    verdict: Answer
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
    results: str | None = None

    def __post_init__(self) -> None:
        numbers = [self.effect, *(self.interval or (None, None))]
        known = all(x is not None and math.isfinite(x) for x in numbers)
        if self.verdict != "inconclusive" and not known:
            raise InputError(
                f"verdict of {self.claim}", self.verdict, "inconclusive (numbers are missing)"
            )

    @property
    def worth(self) -> str:
        """Its kind and populations in words, such as "both roads over seeds"; "" without a kind."""
        over = f" over {', '.join(self.over)}" if self.over else ""
        return f"{self.kind}{over}" if self.kind else ""

    @classmethod
    def of(cls, claim: "ClaimSpec", experiment: str, finding: Finding) -> "Verdict":
        """The verdict on a claim of the experiment of that name, from what its test came to."""
        return cls(
            claim=claim.id,
            experiment=experiment,
            regime=claim.regime,
            statement=claim.statement,
            paper=claim.paper,
            kind=claim.kind,
            over=list(claim.over),
            margin=claim.margin,
            level=claim.level,
            **{f.name: getattr(finding, f.name) for f in fields(finding)},
        )


class _Ledger(RootModel[list[Verdict]]):
    """The rows of a ledger's file."""


def write_verdicts(verdicts: Iterable[Verdict], path: str | Path, of: str) -> None:
    """Write verdicts as a sealed JSON list; ``of`` is what they are of (:mod:`sims.files`)."""
    write_json([asdict(verdict) for verdict in verdicts], path, of)


def read_ledger(path: str | Path, of: str | None = None) -> list[Verdict]:
    """Read a ledger, or one experiment's verdicts.

    A row without a ``paper`` is of the main one: the first ledgers had no other.

    Args:
        path: the file.
        of: what it has to be of; None takes whatever it says it is of.

    Raises:
        InputError: the file is not there, is damaged, or is no ledger.
    """
    return parse(_Ledger, read_json(path, of), str(path), of_json=True).root


def adjust(
    verdicts: Sequence[Verdict], claims: Mapping[str, int] = MappingProxyType({})
) -> list[Verdict]:
    """The verdicts of a ledger, each with its adjusted p-value, and open if that is too large.

    Args:
        verdicts: those that there are.
        claims: a paper's arXiv id to how many tested claims there are of it in all, judged or not:
            a part of a run must not have easier p-values than the whole.

    Tested are the rows of :data:`~sims.kinds.TESTED` kinds, which draws could have
    turned; the others stay as they are, without an adjusted p-value. A paper has two families, of
    all its tested claims each: "this claim is true" is what a refutation rejects, "this claim is
    false" what a support rejects. Within a family Holm's adjustment is
    ``max_{j ≤ i} min(1, (m − j + 1) p_(j))`` in ascending order, for m claims. So the probability
    that the ledger refutes any true claim of the paper is at most 1 − level, and that it supports
    any false one likewise; the claims of another paper change nothing. In either family a claim
    decided the other way, or not at all, has p = 1.

    A verdict whose p-value is not known counts with 1 − level. Source: Holm (1979), Scand. J.
    Statist. 6, 65–70.
    """
    p = [1 - v.level if v.p_value is None else v.p_value for v in verdicts]
    families = Counter(v.paper for v in verdicts if is_tested(v.kind))
    sizes = {paper: max(claims.get(paper, 0), count) for paper, count in families.items()}
    reached: dict[tuple[str, str], tuple[int, float]] = {}
    out = list(verdicts)
    for i in sorted(range(len(out)), key=p.__getitem__):
        verdict = out[i]
        if not is_tested(verdict.kind):
            continue
        size, adjusted = sizes[verdict.paper], 1.0
        if verdict.verdict != "inconclusive":
            family = (verdict.paper, verdict.verdict)
            rank, least = reached.get(family, (0, 0.0))
            adjusted = max(least, min(1.0, (size - rank) * p[i]))
            reached[family] = rank + 1, adjusted
        out[i] = replace(verdict, adjusted=adjusted)
        if verdict.verdict != "inconclusive" and adjusted > 1 - verdict.level + 1e-12:
            out[i] = replace(
                out[i],
                verdict="inconclusive",
                reason=f"{verdict.verdict} by itself (p = {p[i]:.2g}), but not among "
                f"{size} claims (Holm p = {adjusted:.2g}): {verdict.reason}",
            )
    return out
