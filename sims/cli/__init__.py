"""The ``sims`` command. Heavy imports stand inside the commands, so that ``--help`` is instant."""

import gc
import io
import os
import platform
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from typer import TyperException

from sims.base.errors import InputError, one_line
from sims.base.files import private_folder
from sims.cli.commands import app

TEMPORARY_FAILURE = 75
"""Exit code of a command that was stopped: EX_TEMPFAIL; the same command resumes."""


class _Notes(io.TextIOWrapper):
    """Standard error that drops text without a reader, so that no work ends because of it."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


class Stopped(BaseException):
    """The process received a signal to end; raised at once, so that the running work is saved."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    It is 2, with one line on stderr, for bad input, 130 after Ctrl-C, and 75 after a ``SIGTERM``:
    the same command goes on from what was saved.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:  # a process of its own; no file of this folder stands for a module
        os.environ["PYTHONSAFEPATH"] = "1"
        _open_streams()
    _set_caches()
    # Matrices here are small: a second thread costs what it gains, and moves the last digit.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Importing and tracing make hardly any garbage; looking for it takes a tenth of a start.
    gc.set_threshold(1_000_000, 20, 100)
    previous_handler = None
    with suppress(ValueError):  # signals are the main thread's
        previous_handler = signal.signal(signal.SIGTERM, _stop)
    code = 2
    try:
        code = int(app(words, prog_name="sims", standalone_mode=False) or 0)
        sys.stdout.flush()
        message = "interrupted; finished points are kept" if code == 130 else ""
    except (TyperException, ValueError, MemoryError) as error:
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
        gc.freeze()  # the process ends: a last look for garbage would take a quarter of a second
    return code


def _explain(error: TyperException | ValueError | MemoryError) -> str:
    """Print an error that the user can fix, in one line; raise any other error again."""
    if isinstance(error, TyperException):
        return str(error.format_message()).replace("Value error, ", "")
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"memory: got {str(error)!r}; allowed: a problem that fits in memory"
    if re.search("JAX flag|for environment", str(error)):
        return f"environment: got {str(error)!r}; allowed: a value that JAX accepts"
    raise error


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing disturbs the saving
    raise Stopped


def _open_streams() -> None:
    """Put the null device in place of standard streams that are closed.

    Otherwise the next file that is opened would take a stream's number, and what libraries print.
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
    """Let the steps of a run, and later runs, share what XLA compiled (JAX's own settings win).

    The folder is of one host: compiled code fits the processor it was made for. It is this user's
    alone: JAX runs what it finds there. Where no cache can be kept, that of this run serves all
    programs that it starts.
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
