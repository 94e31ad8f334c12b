"""The theory that the claims of a page rest on: each section once, with links inside the page."""

import re
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import NamedTuple

from sims.formulas import sections
from sims.report.text import html

PREFIX = "theory-"
"""Before a section's anchor, in its id in the page: an experiment may have the same name."""


class Chapter(NamedTuple):
    """Sections of one file.

    Attributes:
        path: of the file.
        sections: id in the page, heading and HTML of each.
    """

    path: str
    sections: list[tuple[str, str, str]]


def links(anchors: Iterable[str]) -> Callable[[str], str | None]:
    """From the target of a link to an id in the page, for a page with the sections so named.

    A target is an anchor, after the path of any chapter; other targets, and sections that the page
    does not have, have no id.
    """
    known = set(anchors) & set(sections())

    def inside(target: str) -> str | None:
        path, _, anchor = target.partition("#")
        of_theory = not path or re.search(r"(^|/)\w+\.md$", path)
        return f"{PREFIX}{anchor}" if of_theory and anchor in known else None

    return inside


def chapters(anchors: Iterable[str]) -> list[Chapter]:
    """The sections with these anchors, without #, in the order of the documentation.

    Raises:
        InputError: a formula is no TeX.
    """
    chosen = set(anchors)
    inside = links(chosen)
    found = [(a, section) for a, section in sections().items() if a in chosen]
    return [
        Chapter(
            str(path),
            [(f"{PREFIX}{a}", section.heading, html(section.body, inside)) for a, section in of],
        )
        for path, of in groupby(found, key=lambda entry: entry[1].path)
    ]
