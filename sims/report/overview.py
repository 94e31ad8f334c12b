"""The overview: what became of every claim, on one page of Markdown, for readers on a code host."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from sims.files import write
from sims.judgement import VERDICTS, Verdict, read_ledger
from sims.judgement.grouping import ClaimRows, PaperRows, by_kind, by_paper
from sims.kinds import is_tested
from sims.papers import papers
from sims.report.seeds import other_seeds
from sims.report.seen import seen
from sims.study.experiment import experiments, load_experiment
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
    ledger = read_ledger(folder / "ledger.json", f"ledger.json of {fidelity}")
    seeds = other_seeds(folder, fidelity, sum(is_tested(v.kind) for v in ledger))
    judged = {v.experiment for v in ledger}.intersection(experiments())
    told = seen(ledger, {name: load_experiment(name).spec for name in judged})
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
        "interval, margin, formula and provenance, in a table to sort and filter, and the figures "
        "with their captions: [report.html](report.html), a page that needs nothing beside it. For "
        "programs: [ledger.json](ledger.json).",
        *_table_of_kinds(ledger),
        *(("", f"{seeds[0]}: [seeds.json](seeds.json).") if seeds else ()),
        *(("", f"{told.removesuffix('.')} in [report.html](report.html).") if told else ()),
        "",
        "## Claims",
        "",
        "Each claim with its verdicts: ✓ supported, ✗ refuted, ? open. Rows that are true or false "
        "by algebra, of kind `program`, are counted apart. Claims of our own, beside a paper's, "
        "are in italics.",
        "",
        "| paper | claims |",
        "|---|---|",
        *(_row(paper) for paper in by_paper(ledger, papers())),
    ]
    edited = sum(v.edited for v in ledger)
    if edited:
        lines += ["", f"{edited} of them were edited after the simulation began."]
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


def _row(paper: PaperRows) -> str:
    """A paper, and what became of each of its claims and of ours beside them."""
    link = f"[{paper.arxiv}](https://arxiv.org/abs/{paper.arxiv})"
    about = f"*{paper.about.title}*, {link}" if paper.about else link
    claims = [_claim(row, f"`{row.id}`") for row in paper.claims]
    ours = [_claim(row, f"*{row.id}*") for row in paper.ours if row.verdicts]
    return f"| {about} | {'; '.join(claims + ours)} |"


def _claim(claim: ClaimRows, name: str) -> str:
    """A claim's verdicts, those of its rows of kind ``program`` after the others."""
    algebra = _said(v for v in claim.verdicts if v.kind == "program")
    others = _said(v for v in claim.verdicts if v.kind != "program")
    said = [others, f"by algebra {algebra}" if algebra else ""]
    return f"{name} {' and '.join(filter(None, said)) or 'not covered'}"


def _said(verdicts: Iterable[Verdict]) -> str:
    counts = Counter(v.verdict for v in verdicts)
    return ", ".join(f"{counts[word]} {SIGNS[word]}" for word in VERDICTS if counts[word])
