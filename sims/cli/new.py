"""``sims new``: the folder of a new experiment."""

import keyword
import re
from importlib.resources import files
from pathlib import Path

from sims.base.errors import InputError

SCAFFOLDS = {False: "gap", True: "statistic"}
"""Folder of the template, without or with a statistic."""


def begin_experiment(name: str, statistic: bool) -> None:
    """Write the files of an experiment that runs unchanged, and print their paths.

    Raises:
        InputError: the name is not a module name, or is taken.
    """
    if not re.fullmatch(r"[a-z]\w*", name, re.ASCII) or keyword.iskeyword(name):
        raise InputError("name", name, "lower-case letters, digits and _, starting with a letter")
    folder = Path("experiments", name)
    if folder.exists():
        raise InputError("name", name, "a name not yet used in experiments/")
    folder.mkdir(parents=True)
    title = name.replace("_", " ").capitalize()
    (folder / "__init__.py").write_text(f'"""{title}."""\n', encoding="utf-8")
    for template in (files("sims.study") / "scaffold" / SCAFFOLDS[statistic]).iterdir():
        target = folder / template.name.removesuffix(".txt")
        text = template.read_text("utf-8").replace("NAME", name.replace("_", "-"))
        target.write_text(text, encoding="utf-8")
        print(target)
    print(f"sims run {name} --fidelity smoke")
