"""The site: what notebooks promise, and, once built (``make docs``), that it is whole by itself."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
DOCS, BUILT = ROOT / "docs", ROOT / "build" / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.md"))
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
RELATED = ("index", "search", "next", "prev")
"""Links of a page to others, which load nothing."""
CELL = r"^```\{code-cell\} ipython3\n(.*?)^```$"
MOST_LINES = 20
"""Lines of a notebook's longest cell: more is no example to read."""


class Page(HTMLParser):
    """What a page loads, links to, and can be linked at."""

    def __init__(self, path):
        super().__init__()
        self.loaded, self.links, self.ids, self.text = [], [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.ids.add(given["id"])
        if given.get(LOADED.get(tag)) and given.get("rel") not in RELATED:
            self.loaded.append(given[LOADED[tag]])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])

    def handle_data(self, data):
        self.text.append(data)


page = cache(Page)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_with_one_figure(path):
    cells = re.findall(CELL, path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert sum("plt.subplots" in cell for cell in cells) == 1
    assert max(len(cell.splitlines()) for cell in cells) <= MOST_LINES
    assert f"notebooks/{path.stem}" in (DOCS / "index.md").read_text("utf-8")


@pytest.mark.site
def test_nothing_is_loaded_from_elsewhere():
    """Neither scripts nor fonts nor pictures: the site works from a folder, without a network."""
    pages = sorted(BUILT.rglob("*.html"))
    assert len(pages) > 50
    for path in pages:
        for given in page(path).loaded:
            if given.startswith("data:"):
                continue
            parts = urlsplit(given)
            assert not parts.netloc, f"{path}: {given}"
            assert (path.parent / unquote(parts.path)).is_file(), f"{path}: {given}"
    for path in BUILT.rglob("*.css"):
        text = path.read_text("utf-8")
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), path


@pytest.mark.site
def test_every_link_within_leads_somewhere():
    for path in BUILT.rglob("*.html"):
        for given in page(path).links:
            parts = urlsplit(given)
            if parts.scheme or parts.netloc:
                continue
            target = path.parent / unquote(parts.path) if parts.path else path
            assert target.exists(), f"{path}: {given}"
            if parts.fragment and target.suffix == ".html" and "_modules" not in path.parts:
                assert unquote(parts.fragment) in page(target).ids | {""}, f"{path}: {given}"


@pytest.mark.site
def test_notebooks_were_executed_and_formulas_are_drawn():
    for notebook in NOTEBOOKS:
        path = BUILT / "notebooks" / f"{notebook.stem}.html"
        assert re.search(r'"cell_output.*?<img', path.read_text("utf-8"), re.DOTALL), path
    html = (BUILT / "notebooks" / "decomposition.html").read_text("utf-8")
    assert html.count("<math") > 5
    for path in BUILT.rglob("*.html"):
        if "_modules" not in path.parts:
            assert not re.search(r"\\(?:frac|mathrm|sum|hat)\b", "".join(page(path).text)), path
