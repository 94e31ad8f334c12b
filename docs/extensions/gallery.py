"""The gallery: a page an experiment, of its published figure and verdicts, made before a build."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sphinx.application import Sphinx

from sims.judgement import VERDICTS, Verdict, read_ledger
from sims.papers import papers
from sims.study.experiment import experiments, load_experiment
from sims.study.schema import ExperimentSpec

PUBLISHED = Path("results", "published")
INTRODUCTION = """\
# Gallery

What every experiment found: its figure and the verdicts on its claims, from the published run
(`results/published`, fidelity `standard`). {count} verdicts in all. Lines are theory and points are
simulation with bars of two Monte Carlo standard errors either way; what a verdict takes is said in
[how verdicts are reached](../judgement.md).

"""


def plain(text: str) -> str:
    """Text with nothing in it that Markdown would take for markup, but for code in backticks."""
    marks = re.compile(r"(`[^`|]+`)|([\\`*_<>|\[\]$#~])")
    return marks.sub(lambda m: m[1] or f"\\{m[2]}", " ".join(text.split()))


def counted(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(v.verdict for v in verdicts)
    return ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])


def card(name: str, spec: ExperimentSpec, verdicts: Sequence[Verdict]) -> str:
    return (
        f":::{{figure}} ../../{PUBLISHED}/{name}.png\n:target: {name}.html\n"
        f":alt: figure of {name}\n\n"
        f"[{plain(spec.title)}]({name}.md) – {counted(verdicts)}\n:::\n"
    )


def page(name: str, spec: ExperimentSpec, verdicts: Sequence[Verdict]) -> str:
    rows = [
        " | ".join(
            ("", v.verdict, f"`{v.claim}`", *map(plain, (v.regime, v.statement, v.reason)), "")
        )
        for v in verdicts
    ]
    return "\n".join(
        [
            f"# {plain(spec.title)}",
            "",
            plain(spec.aim),
            "",
            f":::{{figure}} ../../{PUBLISHED}/{name}.png",
            f":alt: figure of {name}",
            ":::",
            "",
            f"**Data.** {plain(spec.data_generating_process)}",
            "",
            f"**Methods.** {plain(spec.methods)}",
            "",
            f"## Verdicts: {counted(verdicts)}",
            "",
            "| verdict | claim | regime | statement | why |",
            "|---|---|---|---|---|",
            *rows,
            "",
            f"Once more: `sims run {name}`. Its files: `experiments/{name}/`.",
            "",
        ]
    )


def write(app: Sphinx) -> None:
    """Pages and their index, into a folder that git ignores; only what changed is written."""
    ledger = read_ledger(PUBLISHED / "ledger.json")
    found = [name for name in experiments() if (PUBLISHED / f"{name}.png").is_file()]
    specs = {name: load_experiment(name).spec for name in found}
    verdicts = {name: [v for v in ledger if v.experiment == name] for name in found}
    pages = {name: page(name, specs[name], verdicts[name]) for name in found}
    index = [INTRODUCTION.format(count=len(ledger))]
    for id, paper in papers().items():
        own = [name for name in found if specs[name].paper == id]
        if own:
            index += [f"## {plain(paper.title)} (arXiv {id})\n", "::::{container} gallery\n"]
            index += [card(name, specs[name], verdicts[name]) for name in own]
            index.append("::::\n")
    index.append("```{toctree}\n:hidden:\n\n" + "\n".join(found) + "\n```\n")
    pages["index"] = "\n".join(index)
    folder = Path(app.srcdir, "gallery")
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
