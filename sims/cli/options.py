"""Output files that the command line names, looked at before the work whose result they take."""

import os
import re
from pathlib import Path

from sims.base.errors import InputError
from sims.base.files import check_target


def writable(path: str | Path) -> Path:
    """The path, if a file can be written there.

    Raises:
        InputError: it is no regular file, or the first folder above it that exists takes none.
    """
    path = Path(path)
    check_target(path)
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InputError("output", str(path), f"a file in a folder; {above} cannot take one")
    return path


def part_of(option: str, text: str) -> tuple[int, int]:
    """The part i of N that ``2/7`` names.

    Raises:
        InputError: it names none.
    """
    match = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text)
    if match and 1 <= int(match[1]) <= int(match[2]):
        return int(match[1]), int(match[2])
    raise InputError(option, text, "i/N, i from 1 to N")
