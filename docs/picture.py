"""Draws docs/static/decompose.svg, what the README shows: ``python docs/picture.py``."""

import io
import os
import re
import subprocess
from pathlib import Path

from rich.console import Console
from rich.text import Text

COMMAND = "sims decompose docs/examples/decompose.yaml"
WIDTH = 102


def main() -> None:
    colours = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    run = subprocess.run(COMMAND.split(), capture_output=True, text=True, check=True, env=colours)
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text(f"$ {COMMAND}", style="bold"))
    console.print(Text.from_ansi(run.stdout.rstrip()))
    picture = console.export_svg(title="one problem, both roads")
    # No font from another host, and no comment on the origin: the page has to do without both.
    picture = re.sub(r"@font-face \{.*?\}\n|<!--.*?-->\n", "", picture, flags=re.DOTALL)
    picture = picture.replace("Fira Code", "DejaVu Sans Mono")
    Path(__file__).with_name("static").joinpath("decompose.svg").write_text(picture)


if __name__ == "__main__":
    main()
