"""Links to files of the repository that are no pages stay what they say, without a link."""

import re
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]*)[^)]*\)")


def unlink(app: Sphinx, name: str, source: list[str]) -> None:
    home = Path(app.srcdir).resolve()
    folder = Path(app.env.doc2path(name)).parent

    def shown(link: re.Match[str]) -> str:
        return link[0] if (folder / link[2]).resolve().is_relative_to(home) else link[1]

    source[0] = LINK.sub(shown, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", unlink)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
