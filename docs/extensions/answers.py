"""The answers' pages, made from results/published before a build: a table, and a page a claim."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sims.judgement.answers import Answer, by_id
from sims.report.answers import by_claim, listing
from sims.report.claims import PUBLISHED, PUBLISHED_FIDELITY, background, claim_of, page
from sims.report.learnt import learnt
from sims.report.text import escape_markdown, title_of
from sims.study.declaration import Declaration
from sims.study.ledger import read_run
from sims.study.papers import MAIN, papers

from .answer_table import write_table

if TYPE_CHECKING:
    from sphinx.application import Sphinx

RUN = Path(PUBLISHED)
INDEX = """\
# All answers

A row is a question on problems that nobody chose, and leads to its page; a claim that algebra
decides names its test. Parentheses hold 95 % intervals of shares, and quartiles of sizes.
[Methods](../methods.md) defines the words.

```{{raw}} html
{table}
```

```{{toctree}}
:hidden:

{entries}
```
"""


def write(app: "Sphinx") -> None:
    """Pages and their index, into a folder that git ignores; only what changed is written."""
    answers = read_run(RUN, PUBLISHED_FIDELITY)
    claims = in_order(by_claim(answers))
    pages = {claim: claim_page(rows) for claim, rows in claims.items()}
    main = listing(papers()[MAIN], answers, lambda one: f"answers/{one.claim}.md", True, True)
    pages["main"] = framed(main)
    pages["learnt"] = learnt(answers, "learnt")
    pages["headline"] = headline(by_id(answers)["random-aligned"])
    pages["index"] = index(claims)
    save(Path(app.srcdir, "answers"), pages)


def in_order(claims: Mapping[str, Sequence[Answer]]) -> dict[str, Sequence[Answer]]:
    """Claims in the order of the papers' files, then those of no paper."""
    listed = [claim.id for paper in papers().values() for claim in paper.every]
    own = [id for id in claims if id not in listed]
    return {id: claims[id] for id in [*listed, *own] if id in claims}


def index(claims: Mapping[str, Sequence[Answer]]) -> str:
    """The page of all answers: their table, and the claims' pages in the sidebar."""
    entries = []
    for id, rows in claims.items():
        entries.append(f"{label(rows[0])} ({rows[0].word_in_full()}) <{id}>")
    table = write_table(claims)
    return INDEX.format(table=table, entries="\n".join(entries))


def headline(answer: Answer) -> str:
    """The headline figure, described by the change that it shows."""
    change = f"{answer.how_much()}, median and quartiles of {answer.result.problems} problems"
    return image(
        RUN / answer.experiment / "headline.svg",
        f"From nearly aligned to random heads: {change}.",
        "..",
    )


def image(path: Path, finding: str, up: str = "../..") -> str:
    """A figure of the repository, described by its finding."""
    alt = finding.replace('"', "'")
    return f':::{{image}} {up}/{path.as_posix()}\n:alt: "{alt}"\n:::'


def download(path: str) -> str:
    """A link to a file of the repository, which the site contains."""
    return f"{{download}}`{Path(path).name} <../../{path}>`"


def claim_page(rows: Sequence[Answer]) -> str:
    """The page of a claim."""
    first = rows[0]
    spec = Declaration.read(first.experiment).spec
    home = RUN / first.experiment
    panel = home / "claims" / f"{first.id}.svg"
    whole = home / "figure.svg"
    caption = (home / "caption.md").read_text("utf-8").split("<!--")[0].strip()
    finding = title_of(caption)
    picture = image(panel, brief(first)) if panel.is_file() else image(whole, finding)
    text = page(rows, picture, spec.derivation, folded, link=download)
    computed = background(spec, first, PUBLISHED_FIDELITY)
    behind = folded("The problems, and how the answer was computed", computed)
    figure = folded("The figure", f"{image(whole, finding)}\n\n{caption}")
    return f"# {escape_markdown(label(first))}\n\n{text}\n{behind}\n{figure}"


def brief(answer: Answer) -> str:
    """Finding of a claim's panel: the word of its answer, and its number."""
    numbers = answer.conditions.in_words() if answer.conditions else answer.result.headline()
    return f"Effect of every problem, in order. {answer.spoken().capitalize()}. {numbers}."


def folded(title: str, text: str) -> str:
    """A part of a page that a reader opens."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>\n"


def label(answer: Answer) -> str:
    """A short name of an answer's claim."""
    claim = claim_of(answer)
    if claim and claim.label:
        return claim.label
    return (answer.own or answer.claim.replace("-", " ").capitalize()).removesuffix(".")


def framed(text: str) -> str:
    """A table that scrolls by itself."""
    return f"::::{{container}} answers\n{text}::::\n"


def save(folder: Path, pages: Mapping[str, str]) -> None:
    """Write what changed, and remove what is no longer a page."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: "Sphinx") -> dict[str, bool]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
