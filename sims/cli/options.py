"""Checks of files that the command line names, before any work."""

import os
import re
from pathlib import Path

from sims.base.documents import read_yaml
from sims.base.errors import InputError
from sims.base.files import check_target
from sims.base.places import experiments

COMMANDS = {
    "a model": "sims inspect {name}",
    "a table": "sims advise --data {name}",
    "a problem": "sims decompose {name}",
    "a sweep": "sims sweep {name}",
    "the file of an experiment": "sims run {folder}",
    "an experiment": "sims run {name}",
}
"""Kinds of files, and the command that takes each."""
SUFFIXES = {".safetensors": "a model", ".csv": "a table", ".npz": "a table"}
"""Suffix of a file name to the kind of file."""


def writable(path: str | Path) -> Path:
    """Path of a file that can be written.

    Raises:
        InputError: not a regular file, or its nearest existing folder is not writable.
    """
    path = Path(path)
    check_target(path)
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InputError("output", str(path), f"a writable path; {above} is not writable")
    return path


def netcdf_file(path: str | Path) -> Path:
    """Path of a NetCDF file that can be written.

    Raises:
        InputError: as by :func:`writable`, or the name does not end in .nc.
    """
    path = writable(path)
    if path.suffix != ".nc":
        raise InputError("--output", str(path), "a file whose name ends in .nc")
    return path


def part_of(option: str, text: str) -> tuple[int, int]:
    """Part i and number of parts N, from a text such as ``2/7``.

    Raises:
        InputError: the text is not i/N.
    """
    match = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text)
    if match and 1 <= int(match[1]) <= int(match[2]):
        return int(match[1]), int(match[2])
    raise InputError(option, text, "i/N, i from 1 to N")


def check_kind(name: str, *kinds: str) -> None:
    """Refuse a file of another command, and name that command.

    Args:
        name: name of a file or an experiment.
        kinds: keys of :data:`COMMANDS` that this command accepts.

    Raises:
        InputError: the file is of another kind, or is not YAML.
    """
    kind = _kind_of(name)
    if kind and kind not in kinds:
        command = COMMANDS[kind].format(name=name, folder=Path(name).parent)
        raise InputError(name, f"this is {kind}; run `{command}`")


def _kind_of(name: str) -> str | None:
    """Kind of a file, a key of :data:`COMMANDS`; None if unknown."""
    path = Path(name)
    if name in experiments():
        return "an experiment"
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        return SUFFIXES.get(path.suffix)
    keys = read_yaml(path).keys()
    if "questions" in keys:
        return "the file of an experiment"
    return "a sweep" if "sweep" in keys else "a problem"
