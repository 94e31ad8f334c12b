"""The site, once built (``make docs``): whole by itself, and in a browser."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser.visiting import in_a_browser, visit

ROOT = Path(__file__).parents[1]
DOCS, BUILT = ROOT / "docs", ROOT / "build" / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.md"))
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
RELATED = ("index", "search", "next", "prev")
"""Links of a page to others, which load nothing."""


class Page(HTMLParser):
    """What a page loads, links to, and can be linked at."""

    def __init__(self, path):
        super().__init__()
        self.loaded, self.links, self.ids = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.ids.add(given["id"])
        if given.get(LOADED.get(tag)) and given.get("rel") not in RELATED:
            self.loaded.append(given[LOADED[tag]])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])


page = cache(Page)


@pytest.mark.site
def test_nothing_is_loaded_from_elsewhere():
    """Neither scripts nor fonts nor pictures."""
    pages = sorted(BUILT.rglob("*.html"))
    assert len(pages) > 50
    for path in pages:
        for given in page(path).loaded:
            parts = urlsplit(given)
            if parts.scheme == "data":
                continue
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
def test_notebooks_were_executed():
    for notebook in NOTEBOOKS:
        path = BUILT / "notebooks" / f"{notebook.stem}.html"
        assert re.search(r'"cell_output.*?<img', path.read_text("utf-8"), re.DOTALL), path


@pytest.mark.site
def test_the_front_page_and_every_claims_page_answer_without_scripts():
    """Answers and formulas are in the file; a claim's page says at most 300 words."""
    pages = {path.stem: path for path in (BUILT / "answers").glob("*.html")}
    front = (BUILT / "index.html").read_text("utf-8")
    for name in ("hdi", "hdi-monotone", "rates"):
        assert f'href="answers/{name}.html"' in front
        assert "<math" in pages[name].read_text("utf-8")
    del pages["index"]
    assert len(pages) > 50
    for name, path in pages.items():
        (text,) = re.findall(r"<article.*?</article>", path.read_text("utf-8"), re.DOTALL)
        text = re.sub(r"<details.*?</details>|<math.*?</math>|<[^>]+>", " ", text, flags=re.DOTALL)
        assert len(re.findall(r"\S*\w\S*", text)) <= 300, name


@pytest.mark.site
@in_a_browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["index", "answers/hdi-monotone", "guide"])
def test_a_page_hinders_nobody_and_nothing_sticks_out(name, width):
    found = visit(BUILT / f"{name}.html", width)
    assert found["errors"] == found["violations"] == []
    assert all(request.startswith("file:") for request in found["requests"])
    assert found["wide"] == width
