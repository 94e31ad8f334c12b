"""``sims new``: an experiment to begin with."""

import keyword
import re
from argparse import Namespace
from importlib.resources import files
from pathlib import Path

from sims.errors import InputError
from sims.study.code import EXPERIMENTS

PARTS = ("experiment.yaml", "effects.py", "figure.py", "caption.md")
SCHEMA = Path("schemas", "experiment.json")
"""The schema by which editors check experiment files, in a checkout of the suite."""


def new(options: Namespace) -> None:
    """``sims new``: the four files of an experiment, an example that runs as it is.

    Raises:
        InputError: the name cannot be a module's, or there is such a folder.
    """
    name = options.name
    if not re.fullmatch(r"[a-z]\w*", name, re.ASCII) or keyword.iskeyword(name):
        raise InputError("name", name, "lower-case letters, digits and _, a letter first")
    folder = Path(EXPERIMENTS, name)
    if folder.exists():
        raise InputError("name", name, f"one that is no folder of {EXPERIMENTS}/ yet")
    folder.mkdir(parents=True)
    scaffold = files("sims.study") / "scaffold"
    for part in PARTS:
        text = (scaffold / f"{part}.txt").read_text("utf-8")
        if part == "experiment.yaml" and SCHEMA.is_file():
            text = f"# yaml-language-server: $schema=../../{SCHEMA}\n{text}"
        (folder / part).write_text(text, encoding="utf-8")
    (folder / "__init__.py").write_text(f'"""{name.replace("_", " ").capitalize()}."""\n')
    print(f"{folder}: {', '.join(PARTS)}; an example, to be made yours")
    print(f"sims run {name} --fidelity smoke")
