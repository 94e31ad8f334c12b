"""The answers' pages, made from results/published before a build: a list of all, a page a claim."""

from pathlib import Path

from sphinx.application import Sphinx

from sims.report.answers import background, by_claim, listing, page
from sims.study.experiment import load_experiment
from sims.study.ledger import read_run
from sims.study.papers import MAIN, papers

PUBLISHED = Path("results", "published")


def write(app: Sphinx) -> None:
    """Pages and their index, into a folder that git ignores; only what changed is written."""
    answers, pages = read_run(PUBLISHED), dict[str, str]()
    for claim, rows in by_claim(answers).items():
        name = rows[0].experiment
        spec = load_experiment(name).spec
        caption = (PUBLISHED / f"{name}.md").read_text("utf-8").split("<!--")[0].strip()
        pages[claim] = f"""# {rows[0].question}

{page(rows, "published", spec.derivation)}
:::{{image}} ../../{PUBLISHED}/{name}.png
:alt: "Figure to: {spec.title}"
:::

<details><summary>What the figure shows</summary>

{caption}

</details>

{background(spec, rows[0], "standard")}"""
    framed = ":::{{container}} answers\n{}:::\n".format
    index, order = ["# All answers, paper by paper\n"], list[str]()
    for paper in papers().values():
        if any(one.paper == paper.arxiv for one in answers):
            table = listing(paper, answers, lambda one: f"{one.claim}.md")
            index += [
                f"## {paper.title}\n",
                f"{paper.authors}, arXiv {paper.arxiv}.\n",
                framed(table),
            ]
            order += [one.id for one in (*paper.claims, *paper.ours) if one.id in pages]
            if paper.arxiv == MAIN:
                main = listing(paper, answers, lambda one: f"answers/{one.claim}.md", brief=True)
                pages["main"] = framed(main)
    claims = "\n".join(f"{claim} <{claim}>" for claim in order)
    pages["index"] = "\n".join([*index, f"```{{toctree}}\n:hidden:\n\n{claims}\n```\n"])
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
