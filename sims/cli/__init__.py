"""The ``sims`` command. Heavy imports are inside the commands, so that ``--help`` is instant."""

import gc
import io
import os
import platform
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from typer import TyperException

from sims.base.errors import InputError, one_line
from sims.base.files import private_folder
from sims.cli.commands import app

MINUTE = 60.0
"""Seconds between the lines that say how far a command without a terminal is."""
TEMPORARY_FAILURE = 75
"""Exit code of a stopped command (EX_TEMPFAIL); the same command resumes it."""
FULL = "by `pip install` of its wheel or folder without --no-deps"
"""What installs the packages that a light install leaves out."""


class _Notes(io.TextIOWrapper):
    """Standard error that drops text if nothing reads it, so that no work ends because of it."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


class Stopped(BaseException):
    """Raised when the process receives a signal to end, so that running work is saved."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    Exit codes: 2 for bad input, with one line on stderr; 130 after Ctrl-C; 75 after a ``SIGTERM``.
    After the last two, the same command resumes from what was saved.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:  # a separate process; no file of this folder may shadow a module
        os.environ["PYTHONSAFEPATH"] = "1"
        _open_streams()
    _set_caches()
    os.environ["MPLBACKEND"] = "agg"  # figures are files, whatever a notebook or a desktop wants
    # Matrices here are small: a second thread gains nothing, and changes the last digit.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Imports and tracing leave hardly any garbage; collecting it takes a tenth of a start.
    gc.set_threshold(1_000_000, 20, 100)
    previous_handler = None
    with suppress(ValueError):  # only the main thread handles signals
        previous_handler = signal.signal(signal.SIGTERM, _stop)
    code = 2
    try:
        with _line_a_minute(words):
            code = int(app(words, prog_name="sims", standalone_mode=False) or 0)
        sys.stdout.flush()
        message = "interrupted; finished points are kept" if code == 130 else ""
    except (TyperException, ValueError, MemoryError, ModuleNotFoundError) as error:
        message = _explain(error)
    except OSError as error:
        if error.filename is None:
            # Python would try again to print what is left, and fail again, when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        location = error.filename or "standard output"
        message = f"{location}: got {error.strerror!r}; allowed: a readable or writable file"
    except Stopped:
        code = TEMPORARY_FAILURE
        message = "stopped; repeat the command to resume"
    finally:
        if previous_handler is not None:
            signal.signal(signal.SIGTERM, previous_handler)
    if message:
        print(one_line(f"{' '.join(['sims', *words[:1]])}: {message}"), file=sys.stderr)
    if arguments is None:
        gc.freeze()  # the process ends: a last collection would take a quarter of a second
    return code


@contextmanager
def _line_a_minute(words: Sequence[str]) -> Iterator[None]:
    """Context in which a command without a terminal says once a minute how far it is."""
    ended = threading.Event()

    def say() -> None:
        begun = time.monotonic()
        while not ended.wait(MINUTE):
            from sims.base.progress import phrase  # slow to load, and most commands are short

            line = f"{' '.join(['sims', *words[:1]])}: {(time.monotonic() - begun) / 60:.0f} min"
            print(", ".join(filter(None, [line, phrase()])), file=sys.stderr, flush=True)

    if not sys.stderr.isatty():
        threading.Thread(target=say, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _explain(error: Exception) -> str:
    """One line on an error that the user can fix; any other error is raised again."""
    if isinstance(error, TyperException):
        return str(error.format_message()).replace("Value error, ", "")
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"memory: got {str(error)!r}; allowed: a problem that fits in memory"
    if isinstance(error, ModuleNotFoundError):
        package = str(error.name).partition(".")[0]
        if package != "sims":
            return f"{package} is not installed: install sims with all its requirements, {FULL}"
    if re.search("JAX flag|for environment", str(error)):
        return f"environment: got {str(error)!r}; allowed: a value that JAX accepts"
    raise error


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing disturbs the saving
    raise Stopped


def _open_streams() -> None:
    """Replace closed standard streams by the null device.

    Otherwise the next file opened would take a stream's number, and receive what libraries print.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(handle, True)
            setattr(sys, name, os.fdopen(handle, "w"))
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    notes = os.fdopen(2, "wb", closefd=False)
    sys.stderr = _Notes(notes, sys.stderr.encoding, "backslashreplace", line_buffering=True)


def _set_caches() -> None:
    """Let the steps of a run, and later runs, share XLA's compiled programs (JAX's settings win).

    The folder belongs to one host, because compiled code fits one processor, and to this user
    only, because JAX runs what it finds there. Where no cache can be kept, a temporary one serves
    all programs of this run.
    """
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return  # no home, no cache
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        folder = private_folder(cache / "sims" / platform.node())
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
        if not os.access(f"{cache}/", os.W_OK):
            os.environ |= {"XDG_CACHE_HOME": str(folder), "MPLCONFIGDIR": str(folder)}
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
