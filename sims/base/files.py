"""Files that are complete or absent, and checked when they are read.

Every file of a run is sealed: it names its identity (``simulation.nc of rates at smoke``), with a
SHA-256 over that and over its contents. The seal is the last line, a comment if the format has
comments; netCDF and PNG end before it, so that other programs can open the file. JSON has no
comments: there every row, or the only object, has a key ``seal``.

A seal is not a signature: it detects damage and mistakes, but not fraud.
"""

import atexit
import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import platform
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sims.base.errors import InputError

LARGEST_UNPACKED = 2**30
"""Maximum unpacked bytes of a small file."""
DENSEST = 50
"""Maximum of unpacked bytes over those of a large file: batches that few problems need are NaN."""
_COMMENTS = {".pdf": b"%%%s"} | dict.fromkeys((".html", ".md", ".svg"), b"<!-- %s -->")


def write(content: bytes | str, path: str | Path, identity: str) -> None:
    """Write a sealed file, completely or not at all; its folder is created if it is missing.

    Args:
        content: bytes, or text to be written as UTF-8.
        path: path of the file, whose suffix gives the format; only a regular file is replaced.
        identity: name of its content, in the seal.

    Raises:
        InputError: the file cannot be written, for lack of space or rights, say; nothing remains.
    """
    data = content.encode() if isinstance(content, str) else content
    replace(data + _seal(Path(path), data, identity), path)


def replace(data: bytes, path: str | Path) -> None:
    """Write bytes to a new file, or replace a regular one, as :func:`write` does.

    Readers see the old file or the new one, never a mixture, even if the machine stops.
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
                raise  # otherwise the file system supports fsync of files only
        finally:
            os.close(folder)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            allowed = "a file that can be written, on a disk with space"
            raise InputError(str(path), error.strerror, allowed) from None
        raise


def check_target(path: Path) -> None:
    """Raise InputError if anything other than a regular file would be read or replaced."""
    try:
        path.lstat()
    except FileNotFoundError:
        return
    except (OSError, ValueError):  # too long, below a file, with NUL in it
        pass
    regular_file(str(path), path, "a regular file, or none yet")


def regular_file(
    field: str,
    path: str | Path,
    allowed: str = "a readable regular file",
    largest: float = math.inf,
) -> Path:
    """Path of a regular file, checked before it is opened: a pipe or a device may never end.

    Raises:
        InputError: the file is missing or unreadable, or has more than ``largest`` bytes.
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
    """Raise InputError if an archive would unpack to much more than its size.

    Args:
        field: the file, for the error line.
        unpacked: unpacked bytes, by its headers.
        packed: bytes of the file.
    """
    limit = max(LARGEST_UNPACKED, DENSEST * packed)
    if unpacked > limit:
        allowed = f"at most {limit:,}: {LARGEST_UNPACKED:,}, or {DENSEST} times the file"
        raise InputError(field, f"{unpacked:,} bytes unpacked", allowed)


def regular_archive(field: str, path: str | Path) -> Path:
    """Path of a regular file, which may be a ZIP archive of limited size.

    Raises:
        InputError: as :func:`regular_file` and :func:`check_unpacked`.
    """
    path = regular_file(field, path)
    # What is no archive, or a damaged one, is refused by whoever reads it.
    damaged = OSError, NotImplementedError, UnicodeDecodeError, zipfile.BadZipFile
    with contextlib.suppress(*damaged), zipfile.ZipFile(path) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
        check_unpacked(field, unpacked, path.stat().st_size)
    return path


def read(path: str | Path, identity: str | None = None) -> bytes:
    """Contents of a sealed file.

    Args:
        path: the file.
        identity: name that its seal must have; None accepts any.

    Raises:
        InputError: the file is missing, damaged, or has another identity.
    """
    content = _bytes(Path(path), identity)
    data, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    label = last.partition(b"seal: ")[2].rpartition(b": ")[0].decode(errors="replace")
    intact = content == data + _seal(Path(path), data, label)
    return _verify(path, identity, label, data, intact)


def digest(*paths: Path) -> str:
    """SHA-256 of concatenated files, as ``cat FILE FILE | sha256sum`` prints it."""
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
    """Rows or object written by :func:`write_json`, without seals.

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


@contextlib.contextmanager
def locked(lock: Path, field: str, otherwise: str) -> Iterator[OSError | None]:
    """Context of the one process that holds a lock, which ends with the process at the latest.

    Args:
        lock: file of the lock, which names its holder.
        field: what is locked, for the error line.
        otherwise: what else to do than to wait, for the error line.

    Returns:
        The error of a file system without locks, on which every process may enter; or None.

    Raises:
        InputError: another process holds it.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            allowed = f"one run at a time: wait for {file.read(200) or 'it'}, or {otherwise}"
            raise InputError(field, "in use by another run", allowed) from None
        except OSError as error:
            yield error
            return
        file.truncate(0)
        file.write(f"process {os.getpid()} of {platform.node()}")
        file.flush()
        yield None


def private_folder(folder: Path) -> Path:
    """Private folder for code that is run later, created if it is missing.

    Returns:
        The folder; or, with a line on stderr, a temporary one if others own the folder or may write
        to it, or if it cannot be created.
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
    if os.getpid() == process:  # a fork may end before the process that uses the folder
        shutil.rmtree(folder, ignore_errors=True)


def is_private(path: Path) -> bool:
    """True for a file or folder (not a link) that this user owns and nobody else may write."""
    try:
        status = path.lstat()
    except OSError:
        return False
    shared = stat.S_ISLNK(status.st_mode) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == os.geteuid() and not shared


def _bytes(path: Path, identity: str | None) -> bytes:
    check_target(path)  # opening a pipe would block
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
