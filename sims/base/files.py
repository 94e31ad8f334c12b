"""Files written whole or not at all, and believed only after a look.

Every file of a run is sealed: it names its identity (``simulation.nc of rates at smoke``), with a
SHA-256 over that and over its contents. The seal is a last line, a comment where the format has
them; netCDF and PNG end before it, so that other programs open the file as it is. JSON has no
comments: there every row, or the one object, has a key ``seal``.

A seal is no signature: it finds damage and mistakes, and nobody who means to deceive.
"""

import atexit
import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sims.base.errors import InputError

LARGEST_UNPACKED = 2**30
"""Bytes that the contents of a small file may take."""
_COMMENTS = {".pdf": b"%%%s"} | dict.fromkeys((".html", ".md", ".svg"), b"<!-- %s -->")


def write(content: bytes | str, path: str | Path, identity: str) -> None:
    """Write a sealed file, whole or not at all; its folder is made if it is missing.

    Args:
        content: bytes, or text to be written as UTF-8.
        path: the file, of the format that its suffix says; only a regular file is replaced.
        identity: name of its content, in the seal.

    Raises:
        InputError: it cannot be written, for want of room or rights, say; nothing is left behind.
    """
    data = content.encode() if isinstance(content, str) else content
    replace(data + _seal(Path(path), data, identity), path)


def replace(data: bytes, path: str | Path) -> None:
    """Put a file of these bytes in the place of a regular one or of none, as :func:`write` does.

    Readers see the old file or the new one, never a part, even if the machine stops.
    """
    path = Path(path)
    temporary = None
    check_target(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.")
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            with contextlib.suppress(PermissionError):  # a file system without modes
                os.fchmod(handle, 0o644)
            os.fsync(handle)
        os.replace(temporary, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        except OSError as error:
            if error.errno == errno.EIO:
                raise  # else the file system knows fsync of files alone
        finally:
            os.close(folder)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            allowed = "a writable file, on a disk with free space"
            raise InputError(str(path), error.strerror, allowed) from None
        raise


def check_target(path: Path) -> None:
    """Raise InputError where something other than a regular file would be read or replaced."""
    try:
        path.lstat()
    except FileNotFoundError:
        return
    except (OSError, ValueError):  # too long, beside a file, with NUL in it
        pass
    regular_file(str(path), path, "a regular file, or none yet")


def regular_file(
    field: str,
    path: str | Path,
    allowed: str = "a readable regular file",
    largest: float = math.inf,
) -> Path:
    """The path of a regular file, looked at before it is opened: a pipe or a device may never end.

    Raises:
        InputError: there is none that can be read, or it has more than the ``largest`` number of
            bytes.
    """
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        raise InputError(field, "file not found") from None
    except (OSError, ValueError) as error:  # a ValueError is a NUL in the name
        raise InputError(field, getattr(error, "strerror", str(error)), allowed) from None
    if not stat.S_ISREG(status.st_mode):
        folder = os.strerror(errno.EISDIR)
        kind = folder if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise InputError(field, kind, allowed)
    if status.st_size > largest:
        raise InputError(field, f"{status.st_size:,} bytes", f"at most {largest:,}")
    return Path(path)


def check_unpacked(field: str, unpacked: int, packed: int) -> None:
    """Raise InputError where what is packed would take far more room than the file that holds it.

    Args:
        field: the file, for the error line.
        unpacked: bytes that its contents take, by its headers.
        packed: bytes of the file.
    """
    limit = max(LARGEST_UNPACKED, 10 * packed)
    if unpacked > limit:
        allowed = f"at most {limit:,}: {LARGEST_UNPACKED:,}, or ten times the file"
        raise InputError(field, f"{unpacked:,} bytes unpacked", allowed)


def regular_archive(field: str, path: str | Path) -> Path:
    """The path of a regular file, which may be a ZIP archive whose parts are not too large.

    Raises:
        InputError: as :func:`regular_file` and :func:`check_unpacked`.
    """
    path = regular_file(field, path)
    # What is no archive, or a damaged one, is refused by whoever reads it.
    with contextlib.suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
        check_unpacked(field, unpacked, path.stat().st_size)
    return path


def read(path: str | Path, identity: str | None = None) -> bytes:
    """The contents of a sealed file.

    Args:
        path: the file.
        identity: name that its seal must have; None takes any.

    Raises:
        InputError: it is not there, is damaged, or has another identity.
    """
    content = _bytes(Path(path), identity)
    data, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    label = last.partition(b"seal: ")[2].rpartition(b": ")[0].decode(errors="replace")
    intact = content == data + _seal(Path(path), data, label)
    return _verify(path, identity, label, data, intact)


def digest(*paths: Path) -> str:
    """The SHA-256 of files one after the other, as ``cat FILE FILE | sha256sum`` prints it."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def write_json(
    rows: Sequence[Mapping[str, Any]] | Mapping[str, Any], path: str | Path, identity: str
) -> None:
    """Write a list of objects, or one object, as sealed JSON.

    Raises:
        InputError: as :func:`write`.
        ValueError: a number is not finite, or there is no object to carry the seal.
    """
    if not rows:
        raise ValueError("no object to carry the seal")
    replace(_json(rows, identity), path)


def read_json(path: str | Path, identity: str | None = None) -> Any:
    """The rows or object that :func:`write_json` wrote, without seals.

    Raises:
        InputError: as :func:`read`.
    """
    content = _bytes(Path(path), identity)
    label = ""
    rows = None
    try:
        rows = json.loads(content)
        for row in [rows] if isinstance(rows, dict) else rows:
            label = row.pop("seal").rpartition(": ")[0]
        intact = bool(rows) and content == _json(rows, label)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        intact = False
    return _verify(path, identity, label, rows, intact)


def private_folder(folder: Path) -> Path:
    """A folder for code that is run later, made if it is missing: this user's alone.

    Returns:
        The folder; or, with a line on stderr, a fresh one that goes when this process ends, where
        others own it or may write into it, or where it cannot be made.
    """
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_private(folder) and folder.is_dir():
        return folder
    print(f"{folder}: not private to this user; using a temporary folder instead", file=sys.stderr)
    fresh = tempfile.mkdtemp(prefix="sims-")
    atexit.register(_remove, fresh, os.getpid())
    return Path(fresh)


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a fork ends before the process that uses it
        shutil.rmtree(folder, ignore_errors=True)


def is_private(path: Path) -> bool:
    """True for a file or folder, no link, that this user owns and nobody else may write."""
    try:
        status = path.lstat()
    except OSError:
        return False
    shared = stat.S_ISLNK(status.st_mode) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.geteuid() and not shared


def _bytes(path: Path, identity: str | None) -> bytes:
    check_target(path)  # a pipe would be waited for
    try:
        return path.read_bytes()
    except FileNotFoundError:
        name = identity or "it"
        message = f"file not found; first run the step that writes {name}"
        raise InputError(str(path), message) from None
    except OSError as error:
        raise _damaged(path, identity, str(error.strerror)) from None


def _verify(path: str | Path, identity: str | None, label: str, content: Any, intact: bool) -> Any:
    if not intact:
        raise _damaged(path, identity, "damaged contents")
    if identity not in (None, label):
        raise _damaged(path, identity, label)
    return content


def _damaged(path: str | Path, identity: str | None, value: str) -> InputError:
    allowed = f"{identity or 'a sealed file'}, as its step wrote it: run that step again"
    return InputError(str(path), value, allowed)


def _sum(identity: str, data: bytes) -> str:
    return f"{identity}: {hashlib.sha256(b'%s: %s' % (identity.encode(), data)).hexdigest()}"


def _seal(path: Path, data: bytes, identity: str) -> bytes:
    line = f"seal: {_sum(identity, data)}".encode()
    return b"\n%s\n" % (_COMMENTS.get(path.suffix, b"%s") % line)


def _json(rows: Any, identity: str) -> bytes:
    seal = {"seal": _sum(identity, json.dumps(rows, ensure_ascii=False, allow_nan=False).encode())}
    marked = {**rows, **seal} if isinstance(rows, Mapping) else [{**row, **seal} for row in rows]
    return f"{json.dumps(marked, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()
