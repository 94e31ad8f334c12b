"""The answers' pages, made from results/published before a build: a list a paper, a page each."""

from pathlib import Path

from sphinx.application import Sphinx

from sims.papers import MAIN, papers
from sims.report.answers import listing, page
from sims.study.experiment import load_experiment
from sims.study.ledger import read_run

PUBLISHED = Path("results", "published")


def write(app: Sphinx) -> None:
    """Pages and their index, into a folder that git ignores; only what changed is written."""
    answers, pages = read_run(PUBLISHED), dict[str, str]()
    names = list(dict.fromkeys(one.experiment for one in answers))
    for name in names:
        spec = load_experiment(name).spec
        caption = (PUBLISHED / f"{name}.md").read_text("utf-8").split("<!--")[0]
        figure = f":::{{image}} ../../{PUBLISHED}/{name}.png\n:alt: figure of {name}\n:::\n"
        body = page(name, spec, [a for a in answers if a.experiment == name], caption, "standard")
        pages[name] = f"# {spec.title}\n\n{figure}\n{body.replace('### ', '## ')}"
    index = ["# Answers, paper by paper\n"]
    for paper in papers().values():
        if any(one.paper == paper.arxiv for one in answers):
            table = listing(paper, answers, lambda one: f"{one.experiment}.md")
            index += [f"## {paper.title}\n", f"{paper.authors}, arXiv {paper.arxiv}.\n", table]
            if paper.arxiv == MAIN:
                pages["main"] = listing(paper, answers, lambda one: f"answers/{one.experiment}.md")
    pages["index"] = "\n".join(
        [*index, "```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"]
    )
    folder = Path(app.srcdir, "answers")
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
