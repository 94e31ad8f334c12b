"""Page of a claim, in Markdown: the claim, our reading, the answer, and its background.

The words are in ``claim.md.j2``. No JAX.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from sims.judgement.answers import Answer
from sims.report.text import environment, escape_markdown
from sims.study.declaration import PUBLISHED_FIDELITY, salt
from sims.study.papers import Claim, papers
from sims.study.schema import ExperimentSpec

PUBLISHED = "results/published"
"""Folder of the published run."""
TEMPLATE = Path(__file__).with_name("claim.md.j2")


def unfolded(title: str, text: str) -> str:
    """Section of a page that is always open."""
    return f"**{title}**\n\n{text}"


def page(
    answers: Sequence[Answer],
    picture: str = "",
    derivation: str = "",
    fold: Callable[[str, str], str] = unfolded,
    run: str = PUBLISHED,
    link: Callable[[str], str] = "`{}`".format,
) -> str:
    """Page of a claim, as Markdown below its title.

    Args:
        answers: answers on the claim, from :func:`sims.report.answers.by_claim`.
        picture: Markdown of the panel of the first answer.
        derivation: default section of the documentation, relative to ``docs/``.
        fold: function that makes a collapsible section from a title and a text.
        run: folder of the run, whose counterexamples the page names.
        link: function that makes Markdown from a path in the repository; default: as code.
    """
    first, *others = answers
    claim = claim_of(first)
    file = f"{run}/counterexamples/{{.id}}.yaml".format
    published = first.salt == salt(first.experiment, PUBLISHED_FIDELITY)
    facts = [f"{name}: {value}" for name, value in first.worst.items()]
    template = environment().from_string(TEMPLATE.read_text("utf-8"))
    text = template.render(
        claim=claim,
        first=first,
        others=others,
        picture=picture,
        facts=facts[1:],
        file=file,
        name=f"{first.experiment}#{first.counterexample}" if published else file(first),
        published=published,
        derivation=claim.derivation or derivation if claim else derivation,
        fold=fold,
        link=link,
    )
    return f"{text.strip()}\n"


def claim_of(answer: Answer) -> Claim | None:
    """Claim of an answer."""
    paper = papers().get(answer.paper)
    listed = paper.every if paper else []
    return next((claim for claim in listed if claim.id == answer.claim), None)


def background(spec: ExperimentSpec, answer: Answer, fidelity: str) -> str:
    """The law of an experiment's problems, and how its answers were computed, as Markdown."""
    law = escape_markdown(spec.law.get("text", ""))
    return (
        f"**The problems.** {law}\n\n**How it was computed.** "
        f"`make reproduce FIDELITY={fidelity} EXPERIMENT={answer.experiment}`, with "
        f"seed {answer.seed} and salt {answer.salt}.\n"
    )
