"""Files written whole or not at all, and believed only after a look.

Every file of a run is sealed: it says what it is of (``simulation.nc of angles at smoke``), with a
SHA-256 over that and over its contents. The seal is a last line, a comment where the format has
them; netCDF and PNG end before it, so that other programs open the file as it is. JSON has no
comments: there every row, or the one object, has a key ``seal``.

What is read here was written here, as what it has to be of, bit for bit. A seal is no signature: it
finds damage and mistakes, and nobody who means to deceive.
"""

import atexit
import contextlib
import functools
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sims.errors import InputError

Rows = Sequence[Mapping[str, Any]] | Mapping[str, Any]
_XML = ("<!-- ", " -->")
_COMMENT = {".html": _XML, ".md": _XML, ".svg": _XML, ".pdf": ("%", "")}
_SEAL = "seal"


def write(content: bytes | str, path: str | Path, of: str) -> None:
    """Write a sealed file, whole or not at all.

    Readers see the old file or the new one, never a part, even if the machine stops: the new one is
    on the disk before it takes the old one's place. The folder is made if it is missing.

    Args:
        content: bytes, or text to be written as UTF-8.
        path: the file, of the format that its suffix says; only a regular file is replaced.
        of: what it is of.

    Raises:
        InputError: it cannot be written, for want of room or rights, say; nothing is left behind.
    """
    data = content.encode() if isinstance(content, str) else content
    replace(data + _line(Path(path), data, of), path)


def replace(data: bytes, path: str | Path) -> None:
    """Put a file of these bytes in the place of a regular one or of none, as :func:`write` does."""
    path, temporary = Path(path), None
    check_target(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.")
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(handle, 0o644)
            os.fsync(handle)
        os.replace(temporary, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, OSError):
            allowed = "a file that can be written, in a folder with room"
            raise InputError(str(path), error.strerror, allowed) from None
        raise


def check_target(path: Path) -> None:
    """Raise InputError where something other than a regular file would be read or replaced."""
    try:
        taken = bool(path.lstat()) and not path.is_file()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # too long, beside a file, with NUL in it
        raise InputError(str(path), getattr(error, "strerror", str(error)), "a path") from None
    if taken:
        raise InputError(str(path), "no regular file", "a regular file, or none yet")


def read(path: str | Path, of: str | None = None) -> bytes:
    """The contents of a sealed file.

    Args:
        path: the file.
        of: what it has to be of; None takes whatever it says it is of.

    Raises:
        InputError: it is not there, is damaged, or is of something else.
    """
    whole = _bytes(Path(path), of)
    data, _, last = whole.removesuffix(b"\n").rpartition(b"\n")
    found = _name(Path(path), last)
    if found is None or whole != data + _line(Path(path), data, found):
        raise _damaged(path, of, "nothing" if not whole else "damaged contents")
    if of not in (None, found):
        raise _damaged(path, of, found)
    return data


def write_json(rows: Rows, path: str | Path, of: str) -> None:
    """Write a list of objects, or one object, as sealed JSON.

    Raises:
        InputError: as :func:`write`.
        ValueError: a number is not finite, or there is no object to carry the seal.
    """
    replace(_json(rows, of), path)


def read_json(path: str | Path, of: str | None = None) -> Any:
    """What :func:`write_json` wrote, without its seals.

    Raises:
        InputError: as :func:`read`.
    """
    whole, found = _bytes(Path(path), of), ""
    try:
        rows = json.loads(whole)
        for row in [rows] if isinstance(rows, dict) else rows:
            found = row.pop(_SEAL).rpartition(": ")[0]
        believed = whole == _json(rows, found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        believed = False
    if not believed:
        raise _damaged(path, of, "damaged contents" if whole else "nothing")
    if of not in (None, found):
        raise _damaged(path, of, found)
    return rows


def private(folder: Path) -> Path:
    """A folder for code that is run later, made if it is missing: this user's alone.

    Returns:
        The folder; or, with a line on stderr, a fresh one for this process, where others own it or
        may write into it, or where it cannot be made.
    """
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_own(folder) and folder.is_dir():
        return folder
    print(f"{folder}: not this user's alone; a fresh folder is used", file=sys.stderr)
    return _fresh()


def is_own(path: Path) -> bool:
    """Whether a file or folder is there, no link, this user's, and nobody else may write it."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return (
        not stat.S_ISLNK(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


@functools.cache
def _fresh() -> Path:
    folder = tempfile.mkdtemp(prefix="sims-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _bytes(path: Path, of: str | None) -> bytes:
    check_target(path)  # a pipe would be waited for
    try:
        return path.read_bytes()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise _damaged(path, of, "no file" if missing else str(error.strerror)) from None


def _damaged(path: str | Path, of: str | None, value: str) -> InputError:
    allowed = f"{of or 'a sealed file'}, whole as its step wrote it: run that step again"
    return InputError(str(path), value, allowed)


def _sum(of: str, data: bytes) -> str:
    return f"{of}: {hashlib.sha256(b'%s: %s' % (of.encode(), data)).hexdigest()}"


def _line(path: Path, data: bytes, of: str) -> bytes:
    before, after = _COMMENT.get(path.suffix, ("", ""))
    return f"\n{before}{_SEAL}: {_sum(of, data)}{after}\n".encode()


def _name(path: Path, line: bytes) -> str | None:
    """What a file is of by its last line, or None if that is no seal."""
    before, after = _COMMENT.get(path.suffix, ("", ""))
    text = line.decode(errors="replace").removeprefix(f"{before}{_SEAL}: ").removesuffix(after)
    return text.rpartition(": ")[0] or None


def _json(rows: Rows, of: str) -> bytes:
    if not rows:
        raise ValueError("no object to carry the seal")
    data = json.dumps(rows, ensure_ascii=False, allow_nan=False).encode()
    seal = {_SEAL: _sum(of, data)}
    marked = {**rows, **seal} if isinstance(rows, Mapping) else [{**row, **seal} for row in rows]
    return f"{json.dumps(marked, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()
