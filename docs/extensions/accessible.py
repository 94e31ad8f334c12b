"""What the theme leaves out for keyboards and screen readers, put into each page."""

from pathlib import Path

from sphinx.application import Sphinx

MISSING = {
    'class="caption" role="heading">': 'class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<th class="head"><p></p></th>': "<td></td>",
    "<pre>": '<pre tabindex="0">',
}


def complete(app: Sphinx, error: Exception | None) -> None:
    for path in Path(app.outdir).rglob("*.html") if error is None else ():
        before = text = path.read_text(encoding="utf-8")
        for short, full in MISSING.items():
            text = text.replace(short, full)
        if text != before:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
