"""The overview: ledger, figures and captions as Markdown, for readers on a code host."""

from collections.abc import Sequence
from pathlib import Path

from sims.files import write_text
from sims.judgement import VERDICTS, Verdict, read_ledger
from sims.judgement.grouping import ClaimRows, PaperRows, by_paper
from sims.papers import papers
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
    ledger = read_ledger(folder / "ledger.json")
    counts = ", ".join(f"{sum(v.verdict == k for v in ledger)} {k}" for k in VERDICTS)
    seeds = other_seeds(folder, len(ledger))
    names = [name for name in experiments() if (folder / name / "caption.md").is_file()]
    origins = [provenance(folder / name / "simulation.nc") for name in names]
    machine = {
        f"{o['cores']} cores, {o.get('device', 'cpu')}, jax {o['versions']['jax']}" for o in origins
    }
    lines = [
        "# Ledger, figures and captions",
        "",
        f"Made by `make reproduce FIDELITY={fidelity} && make publish FIDELITY={fidelity}` "
        f"({'; '.join(sorted(machine))}). {len(ledger)} verdicts: {counts}. With designs, formulas "
        "and provenance: [report.html](report.html); for programs: [ledger.json](ledger.json).",
        *(("", f"{seeds[0]}.") if seeds else ()),
    ]
    for paper in by_paper(ledger, papers()):
        lines += _of_paper(paper)
    for name in names:
        caption = (folder / name / "caption.md").read_text(encoding="utf-8").strip()
        lines += ["", f"## {name}", "", f"![{name}]({name}.png)", "", caption]
    write_text("\n".join(lines) + "\n", output)


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
    head = "| claim | experiment | regime | verdict | effect | interval | margin |"
    return ["", head, "|---|---|---|---|---|---|---|", *rows] if rows else []


def _row(v: Verdict) -> str:
    interval = "" if v.interval is None else ", ".join(map(significant, v.interval))
    verdict = f"{v.verdict}, edited after the simulation began" if v.edited else v.verdict
    return (
        f"| `{v.claim}` | [{v.experiment}](#{v.experiment}) | {v.regime} | {verdict} | "
        f"{significant(v.effect)} | {interval} | {significant(v.margin)} |"
    )
