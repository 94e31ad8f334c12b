"""What the page "Try it" shows, written once its site is built: no process forks after JAX."""

import json
from pathlib import Path

from sphinx.application import Sphinx


def write_files(app: Sphinx, error: Exception | None) -> None:
    """Write the table, as a script that needs no server, and the figure, where a site was built."""
    folder = Path(app.outdir, "_static")
    if error is None and folder.is_dir():
        from extensions.try_table import compute_table, draw_figure

        table = compute_table()
        text = f"const TABLE = {json.dumps(table)};\n"
        (folder / "try_it_table.js").write_text(text, encoding="utf-8")
        draw_figure(table, folder / "try_it.svg")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
