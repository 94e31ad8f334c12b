"""Findings of a run, in sentences whose numbers the answers fill in. No JAX."""

from collections.abc import Sequence
from pathlib import Path

from sims.base.errors import InputError
from sims.base.places import place
from sims.judgement.answers import Answer, by_id
from sims.report.answers import filled, listing
from sims.report.text import environment
from sims.study.papers import MAIN, papers

TEMPLATES = ("learnt", "trained")
"""Templates in docs/learnt/, one per text of the README."""


def readme_texts(answers: Sequence[Answer]) -> dict[str, str]:
    """Texts of a run for the README, by the name of their place."""
    texts = {}
    if MAIN in (known := papers()):
        texts["main"] = listing(known[MAIN], answers, brief=True, first=True)
    for name in TEMPLATES:
        if _template(name).is_file():
            texts[name] = learnt(answers, name)
    return texts


def fill_readme(name: str, text: str) -> None:
    """Fill a text into README.md of the working directory, if it has a place for it."""
    if (readme := Path("README.md")).is_file():
        readme.write_text(filled(readme.read_text("utf-8"), name, text), encoding="utf-8")


def _template(name: str) -> Path:
    return Path(place(f"docs/learnt/{name}.md.j2"))


def learnt(answers: Sequence[Answer], name: str) -> str:
    """Sentences of a template, as Markdown.

    A Jinja template can use ``answers`` by id, and ``require(condition, sentence)``, which raises
    if the answers contradict a sentence, which must then be rewritten.

    Raises:
        InputError: the template cannot be read, names a missing answer, or contains a contradicted
            sentence.
    """
    path = _template(name)

    def require(condition: bool, sentence: str) -> str:
        if not condition:
            raise InputError(str(path), sentence, "a sentence that the answers do not contradict")
        return ""

    templates = environment()
    templates.globals["require"] = require
    try:
        template = templates.from_string(path.read_text(encoding="utf-8"))
        text = template.render(answers=by_id(answers))
    except InputError:
        raise
    except Exception as error:  # whatever the template's expressions raise
        raise InputError(str(path), str(error), "a Jinja template with known names") from None
    return text.strip() + "\n"
