"""What stands on the command line, checked as it is parsed: errors are one line each."""

import argparse
import math
import os
import re
from pathlib import Path
from typing import NoReturn

from sims.errors import InputError, one_line, one_of
from sims.files import check_target


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all errors of the suite, and name the nearest word.

    Options are not to be cut short: ``--se`` would change its meaning with a new option.
    """

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 and one line on stderr."""
        self.exit(2, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            allowed = one_of(action.choices, value)
            raise argparse.ArgumentError(action, f"got {shown(value)}; allowed: {allowed}")

    def unknown(self, arguments: list[str]) -> NoReturn:
        """Refuse arguments that no option or position takes."""
        options = [name for action in self._actions for name in action.option_strings]
        first = arguments[0].split("=")[0]
        self.error(f"unknown argument: got {shown(first)}; allowed: {one_of(options, first)}")


def shown(value: object) -> str:
    """The value as an error line shows it: on one line, and not too long."""
    text = one_line(repr(value))
    return text if len(text) <= 80 else text[:77] + "..."


def filled(given: str) -> str:
    """A name or a path."""
    if not given.strip() or "\0" in given:
        raise _refused(given, "text, not empty and without NUL")
    return given


def whole_number(most: int, least: int = 0) -> "type[int]":
    """The type of an option that takes whole numbers from ``least`` to ``most``."""

    def parse(given: str) -> int:
        if not re.fullmatch(r"[0-9]{1,19}", given) or not least <= int(given) <= most:
            raise _refused(given, f"a whole number, {least} to {most}")
        return int(given)

    return parse  # type: ignore[return-value]


def positive(given: str) -> float:
    """A finite number above 0."""
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf) or "_" in given or not given.isascii():
        raise _refused(given, "a finite number > 0")
    return number


def writable(path: Path) -> Path:
    """The path, if a file can be written there; looked at before the work whose result it takes.

    Raises:
        InputError: it is no regular file, or the first folder above it that exists takes none.
    """
    check_target(path)
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InputError("output", str(path), f"a file in a folder; {above} cannot take one")
    return path


def netcdf(given: str) -> Path:
    """The path of a netCDF file that can be written.

    Raises:
        InputError: its name ends otherwise, or as :func:`writable`.
    """
    path = writable(Path(given))
    if path.suffix != ".nc":
        raise InputError("--output", str(path), "a file whose name ends in .nc")
    return path


def _refused(given: str, allowed: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"got {shown(given)}; allowed: {allowed}")
