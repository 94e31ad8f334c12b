"""``sims new``: an experiment to begin with."""

import keyword
import re
from argparse import Namespace
from importlib.resources import files

from sims.errors import InputError
from sims.study.experiment import EXPERIMENTS

PARTS = ("experiment.yaml", "effects.py", "figure.py", "caption.md")


def new(options: Namespace) -> None:
    """``sims new``: the four files of an experiment, an example that runs as it is.

    Raises:
        InputError: the name cannot be a module's, or there is such a folder.
    """
    name = options.name
    if not re.fullmatch(r"[a-z]\w*", name, re.ASCII) or keyword.iskeyword(name):
        raise InputError("name", name, "lower-case letters, digits and _, a letter first")
    folder = EXPERIMENTS / name
    if folder.exists():
        raise InputError("name", name, f"one that is no folder of {EXPERIMENTS}/ yet")
    folder.mkdir(parents=True)
    scaffold = files("sims.study") / "scaffold"
    for part in PARTS:
        (folder / part).write_text((scaffold / f"{part}.txt").read_text("utf-8"), encoding="utf-8")
    (folder / "__init__.py").write_text(f'"""{name.replace("_", " ").capitalize()}."""\n')
    print(f"{folder}: {', '.join(PARTS)}; an example, to be made yours")
    print(f"sims run {name} --fidelity smoke")
