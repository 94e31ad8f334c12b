"""The overview: ledger, figures and captions as Markdown, for readers on a code host."""

from collections.abc import Sequence
from pathlib import Path

from sims.files import write
from sims.judgement import VERDICTS, Verdict, read_ledger
from sims.judgement.grouping import ClaimRows, PaperRows, by_kind, by_paper
from sims.kinds import is_tested
from sims.papers import papers
from sims.report.captions import caption
from sims.report.seeds import other_seeds
from sims.report.text import significant
from sims.study.experiment import experiments
from sims.study.results import provenance


def write_overview(folder: Path, fidelity: str, output: Path) -> None:
    """Write ledger, figures and captions as Markdown.

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
        "# Ledger, figures and captions",
        "",
        f"Made by `make reproduce FIDELITY={fidelity} && make publish FIDELITY={fidelity}` "
        f"({'; '.join(sorted(machine))}). {len(ledger)} verdicts. With designs, formulas "
        "and provenance: [report.html](report.html); for programs: [ledger.json](ledger.json).",
        *_table_of_kinds(ledger),
        *(("", f"{seeds[0]}.") if seeds else ()),
    ]
    for paper in by_paper(ledger, papers()):
        lines += _of_paper(paper)
    for name in names:
        text = caption(folder / name, f"{name} at {fidelity}").strip()
        lines += ["", f"## {name}", "", f"![{name}]({name}.png)", "", text]
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
        title = f"{paper.about.authors} ({paper.about.year}): *{paper.about.title}*"
        lines.append(f"{title}, {link}. {paper.about.read}")
    lines += _table(paper.claims)
    if any(row.verdicts for row in paper.ours):
        lines += ["", "Our own claims beside the paper's:", *_table(paper.ours)]
    if missing := ", ".join(f"`{row.id}`" for row in paper.uncovered()):
        lines += ["", f"Not covered: {missing}."]
    return lines


def _table(claims: Sequence[ClaimRows]) -> list[str]:
    rows = [_row(v) for claim in claims for vs in claim.by_experiment().values() for v in vs]
    head = "| claim | experiment | regime | kind, over | verdict | effect | interval | margin |"
    return ["", head, "|---|---|---|---|---|---|---|---|", *rows] if rows else []


def _row(v: Verdict) -> str:
    interval = "" if v.interval is None else ", ".join(map(significant, v.interval))
    verdict = f"{v.verdict}, edited after the simulation began" if v.edited else v.verdict
    return (
        f"| `{v.claim}` | [{v.experiment}](#{v.experiment}) | {v.regime} | {v.worth} | {verdict} | "
        f"{significant(v.effect)} | {interval} | {significant(v.margin)} |"
    )
