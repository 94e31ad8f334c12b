"""The overview: what became of every claim, on one page of Markdown, for readers on a code host."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from sims.files import write
from sims.judgement import VERDICTS, Verdict
from sims.judgement.grouping import ClaimRows, by_kind, by_paper
from sims.papers import papers
from sims.report.answers import spoken, table
from sims.study.experiment import experiments
from sims.study.ledger import read_run
from sims.study.results import provenance

SIGNS = {"supported": "✓", "refuted": "✗", "inconclusive": "?"}
"""Verdicts where there is no room for the word."""


def write_overview(folder: Path, fidelity: str, output: Path) -> None:
    """Write a row a paper and the list of figures as Markdown; single rows are the report's.

    Args:
        folder: results of one fidelity, as for :func:`sims.report.write_report`.
        fidelity: its name.
        output: the Markdown file; figures are shown as ``NAME.png`` beside it.
    """
    ledger, answers = read_run(folder, fidelity)
    names = [name for name in experiments() if (folder / name / "caption.md").exists()]
    origins = [
        provenance(folder / name / "simulation.nc", f"simulation.nc of {name} at {fidelity}")
        for name in names
    ]
    machines = {
        f"{o['cores']} cores, {o.get('device', 'cpu')}, jax {o['versions']['jax']}" for o in origins
    }
    lines = [
        "# What became of every claim",
        "",
        f"Made by `make reproduce FIDELITY={fidelity} && make publish FIDELITY={fidelity}` "
        f"({'; '.join(sorted(machines))}). {len(ledger)} verdicts. Each with its statement, "
        "effect, interval, margin, formula and provenance, in a table to sort and filter, and the "
        "figures with their captions: [report.html](report.html), a page that needs nothing beside "
        "it. For programs: [ledger.json](ledger.json).",
        "",
        *(["## Answers", "", table(answers, "{}.png"), ""] if answers else []),
        *([f"| kind of row | {' | '.join(VERDICTS)} |", "|---|---|---|---|"] if ledger else []),
    ]
    for kind, counts in by_kind(ledger).items():
        lines.append(f"| {kind} | {' | '.join(str(counts[verdict]) for verdict in VERDICTS)} |")
    lines += [
        "",
        "## Claims",
        "",
        "Each claim with its verdicts: ✓ supported, ✗ refuted, ? open. Rows that are true or false "
        "by algebra, of kind `program`, are counted apart; *tested* are claims that a test of the "
        "code shows. Claims of our own, beside a paper's, are in italics.",
        "",
        "| paper | claims |",
        "|---|---|",
    ]
    for paper in by_paper(ledger, papers(), answers):
        title = f"*{paper.about.title}*, " if paper.about else ""
        claims = [_claim(row, f"`{row.id}`") for row in paper.claims]
        claims += [_claim(row, f"*{row.id}*") for row in paper.ours if row.covered]
        link = f"[{paper.arxiv}](https://arxiv.org/abs/{paper.arxiv})"
        lines.append(f"| {title}{link} | {'; '.join(claims)} |")
    if edited := sum(v.edited for v in ledger):
        lines += ["", f"{edited} of them were edited after the simulation began."]
    figures = ", ".join(f"[{name}]({name}.png)" for name in names)
    lines += ["", "## Figures", "", f"{figures}.", ""]
    write("\n".join(lines), output, f"README.md of {fidelity}")


def _claim(claim: ClaimRows, name: str) -> str:
    """A claim's verdicts, those of its rows of kind ``program`` after the others."""
    algebra = _said(v for v in claim.verdicts if v.kind == "program")
    others = _said(v for v in claim.verdicts if v.kind != "program")
    words = "; ".join(dict.fromkeys(spoken(a) for a in claim.answers))
    said = [words, others, f"by algebra {algebra}" if algebra else ""]
    said.append("by algebra (tested)" if claim.algebra else "")
    return f"{name} {' and '.join(filter(None, said)) or 'not covered'}"


def _said(verdicts: Iterable[Verdict]) -> str:
    counts = Counter(v.verdict for v in verdicts)
    return ", ".join(f"{counts[word]} {SIGNS[word]}" for word in VERDICTS if counts[word])
