"""The overview: what became of every claim, on one page of Markdown, for readers on a code host."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sims.files import write
from sims.judgement import VERDICTS, Verdict, read_ledger
from sims.judgement.grouping import ClaimRows, PaperRows, by_kind, by_paper
from sims.kinds import is_tested
from sims.papers import papers
from sims.report.seeds import other_seeds
from sims.study.experiment import experiments
from sims.study.results import provenance

NAMED = 6
"""Regimes of a claim that are named at most."""


def write_overview(folder: Path, fidelity: str, output: Path) -> None:
    """Write a row a claim and the list of figures as Markdown; single rows are the report's.

    Args:
        folder: results of one fidelity, as for :func:`sims.report.write_report`.
        fidelity: its name.
        output: the Markdown file; figures are shown as ``NAME.png`` beside it.
    """
    ledger = read_ledger(folder / "ledger.json", f"ledger.json of {fidelity}")
    seeds = other_seeds(folder, fidelity, sum(is_tested(v.kind) for v in ledger))
    names = [name for name in experiments() if (folder / name / "caption.md").exists()]
    origins = [
        provenance(folder / name / "simulation.nc", f"simulation.nc of {name} at {fidelity}")
        for name in names
    ]
    machine = {
        f"{o['cores']} cores, {o.get('device', 'cpu')}, jax {o['versions']['jax']}" for o in origins
    }
    lines = [
        "# What became of every claim",
        "",
        f"Made by `make reproduce FIDELITY={fidelity} && make publish FIDELITY={fidelity}` "
        f"({'; '.join(sorted(machine))}). {len(ledger)} verdicts. Each with its statement, effect, "
        "interval, margin, formula and provenance: [report.html](report.html), which shows the "
        "figures with their captions; for programs: [ledger.json](ledger.json).",
        *_table_of_kinds(ledger),
        *(("", f"{seeds[0]}.") if seeds else ()),
    ]
    for paper in by_paper(ledger, papers()):
        lines += _of_paper(paper)
    figures = [f"[{name}]({name}.png)" for name in names]
    lines += ["", "## Figures", "", f"{', '.join(figures)}."]
    write("\n".join(lines) + "\n", output, f"README.md of {fidelity}")


def _table_of_kinds(ledger: Sequence[Verdict]) -> list[str]:
    """How many rows of each kind came to each verdict; the first two kinds are Holm's family."""
    rows = [
        f"| {kind} | {' | '.join(str(counts[verdict]) for verdict in VERDICTS)} |"
        for kind, counts in by_kind(ledger).items()
    ]
    return ["", f"| kind of row | {' | '.join(VERDICTS)} |", "|---|---|---|---|", *rows]


def _of_paper(paper: PaperRows) -> list[str]:
    """Heading and tables of one paper's claims."""
    link = f"[arXiv {paper.arxiv}](https://arxiv.org/abs/{paper.arxiv})"
    lines = ["", f"## Claims of arXiv {paper.arxiv}", ""]
    if paper.about is None:
        lines.append(f"{link}.")
    else:
        about = f"*{paper.about.title}* ({paper.about.year}; authors: {paper.about.authors})"
        lines.append(f"{about}, {link}. {paper.about.read}")
    lines += _table(paper.claims)
    if any(row.verdicts for row in paper.ours):
        lines += ["", "Our own claims beside the paper's:", *_table(paper.ours)]
    if missing := ", ".join(f"`{row.id}`" for row in paper.uncovered()):
        lines += ["", f"Not covered: {missing}."]
    return lines


def _table(claims: Sequence[ClaimRows]) -> list[str]:
    rows = [_row(claim) for claim in claims if claim.verdicts]
    head = f"| claim | experiments | {' | '.join(VERDICTS)} | regimes refuted or open |"
    return ["", head, "|---|---|---|---|---|---|", *rows] if rows else []


def _row(claim: ClaimRows) -> str:
    """What became of a claim, and the first few of the regimes in which it is not supported."""
    counts = Counter(v.verdict for v in claim.verdicts)
    known = [_regime(v) for v in claim.verdicts if v.verdict != "supported" or v.edited]
    shown = known[:NAMED] + ([f"and {len(known) - NAMED} more"] if len(known) > NAMED else [])
    return (
        f"| `{claim.id}` | {', '.join(claim.by_experiment())} | "
        f"{' | '.join(str(counts[verdict]) for verdict in VERDICTS)} | {'; '.join(shown)} |"
    )


def _regime(v: Verdict) -> str:
    edited = ", edited after the simulation began" if v.edited else ""
    return f"{v.regime} ({'open' if v.verdict == 'inconclusive' else v.verdict}{edited})"
