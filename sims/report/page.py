"""The page: findings, verdicts, claims, theory, other seeds and provenance as one HTML file."""

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from sims import files
from sims.errors import InputError
from sims.judgement import VERDICTS, Verdict, read_ledger
from sims.judgement.grouping import PaperRows, by_kind, by_paper
from sims.kinds import is_tested
from sims.papers import papers
from sims.report.findings import Finding, finding
from sims.report.origins import origins
from sims.report.pictures import interval
from sims.report.seeds import other_seeds
from sims.report.seen import seen
from sims.report.text import environment
from sims.report.theory import chapters, links
from sims.study.experiment import experiments, load_experiment
from sims.study.schema import ClaimSpec, ExperimentSpec

FIRST = "angles"
"""The experiment whose figure opens the page, if there is one of it: lines of theory, points of
simulation and margins, about the claim that gives the theory its name."""

Claims = dict[tuple[str, str, str, str], ClaimSpec]
"""Experiment, paper, claim and regime, which make a row of the ledger, to what its file says."""


class Group(NamedTuple):
    """Findings about one paper.

    Attributes:
        paper: its claims and their rows.
        counts: how many rows came to each verdict.
        findings: in the order of the paper's claims.
    """

    paper: PaperRows
    counts: Counter[str]
    findings: list[Finding]


def write_report(folder: Path, fidelity: str, output: Path) -> None:
    """Write the page, which needs nothing beside it and loads nothing.

    Args:
        folder: results of one fidelity, with ``ledger.json``, ``seeds.json`` if other seeds were
            judged, and a folder for each experiment.
        fidelity: its name.
        output: the HTML file.

    Raises:
        InputError: there is no ledger, or no finished experiment.
    """
    ledger = read_ledger(folder / "ledger.json", f"ledger.json of {fidelity}")
    names = [name for name in experiments() if (folder / name / "caption.md").exists()]
    if not names:
        raise InputError(str(folder), "nothing to report", "a run: sims plot, or snakemake")
    specs = {name: load_experiment(name).spec for name in names}
    anchors = {c.formula.lstrip("#") for spec in specs.values() for c in spec.claims}
    inside = links(anchors)
    findings = [
        finding(
            spec, folder / name, f"{name} at {fidelity}",
            [v for v in ledger if v.experiment == name], inside,
        )
        for name, spec in specs.items()
    ]  # fmt: skip
    page = render(
        fidelity,
        ledger,
        specs,
        findings,
        inside,
        theory=chapters(anchors),
        origins=origins(folder, names, fidelity),
        seeds=other_seeds(folder, fidelity, sum(is_tested(v.kind) for v in ledger)),
    )
    files.write(page, output, f"report.html of {fidelity}")


def render(
    fidelity: str,
    ledger: Sequence[Verdict],
    specs: dict[str, ExperimentSpec],
    findings: Sequence[Finding],
    inside: Callable[[str], str | None],
    **parts: object,
) -> str:
    """The page's text.

    Args:
        fidelity: its name.
        ledger: the verdicts.
        specs: experiment files by name.
        findings: of these experiments.
        inside: from the anchor of a section of the theory to its id in the page, or None.
        **parts: theory, origins and seeds, as the templates take them.
    """
    claims: Claims = {
        (name, c.paper, c.id, c.regime): c for name, spec in specs.items() for c in spec.claims
    }
    theory_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for claim in claims.values():
        id = inside(claim.formula)
        if id and id not in theory_of[claim.paper, claim.id]:
            theory_of[claim.paper, claim.id].append(id)
    templates = environment(html=True)
    script = templates.get_template("table.js.j2").render()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return templates.get_template("page.html.j2").render(
        fidelity=fidelity,
        ledger=ledger,
        verdicts=VERDICTS,
        counts=Counter(v.verdict for v in ledger),
        kinds=by_kind(ledger),
        groups=_groups(ledger, findings),
        first=next((f for f in findings if f.name == FIRST), next(iter(findings), None)),
        claims=claims,
        theory_of=theory_of,
        tested=is_tested,
        seen=seen(ledger, specs),
        picture=lambda v: Markup(interval(v, claims.get(_key(v)))),
        key=_key,
        script=Markup(script),
        digest=digest,
        **parts,
    )


def _key(v: Verdict) -> tuple[str, str, str, str]:
    return v.experiment, v.paper, v.claim, v.regime


def _groups(ledger: Sequence[Verdict], findings: Sequence[Finding]) -> list[Group]:
    """Papers with a verdict or a figure, each with its findings in the order of its claims."""
    groups = []
    for paper in by_paper(ledger, papers()):
        order = {row.id: place for place, row in enumerate((*paper.claims, *paper.ours))}

        def place(f: Finding, order: dict[str, int] = order, of: str = paper.arxiv) -> int:
            places = [order[id] for arxiv, id in f.claims if arxiv == of]
            return min(places, default=len(order))

        counts = Counter(v.verdict for row in (*paper.claims, *paper.ours) for v in row.verdicts)
        own = sorted((f for f in findings if f.paper == paper.arxiv), key=place)
        if counts or own:
            groups.append(Group(paper, counts, own))
    return groups
