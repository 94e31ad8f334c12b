"""The ``sims`` command. Heavy imports stand inside the commands, so that ``--help`` is instant."""

import gc
import os
import platform
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from sims.cli.commands import make_parser
from sims.cli.stopping import GO_ON, Stopped, stoppable
from sims.errors import InputError, one_line
from sims.files import private


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    It is 2, with one line on stderr, for bad input, and 75 after a ``SIGTERM``: the same command
    goes on from what was saved.
    """
    parser = make_parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what could stand here
        import argcomplete

        argcomplete.autocomplete(parser)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        options.parser.unknown(unknown)
    _keep_compilations()
    # Matrices here are small: a second thread costs what it gains, and moves the last digit.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Importing and tracing make hardly any garbage; looking for it takes a tenth of a start.
    gc.set_threshold(100_000, 20, 100)
    module, function = options.run.split(":")
    try:
        with stoppable():
            code = getattr(import_module(f"sims.cli.{module}"), function)(options)
            sys.stdout.flush()
            return int(code or 0)
    except InputError as error:
        print(f"sims {options.command}: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"sims {options.command}: memory: got {one_line(str(error)) or 'too little'!r}; "
              "allowed: a problem that fits", file=sys.stderr)  # fmt: skip
        return 2
    except BrokenPipeError:
        _discard_output()  # nobody reads on: not worth a message
        return 0
    except OSError as error:
        if error.filename is None:
            _discard_output()
        where = error.filename or "standard output"
        print(f"sims {options.command}: {where}: got {error.strerror!r}; "
              "allowed: what can be read or written", file=sys.stderr)  # fmt: skip
        return 2
    except KeyboardInterrupt:
        print(f"sims {options.command}: interrupted; finished points are kept", file=sys.stderr)
        return 130
    except Stopped:
        print(f"sims {options.command}: stopped; the same command goes on", file=sys.stderr)
        return GO_ON


def _discard_output() -> None:
    """Drop what is still to be printed: Python would try again, and fail again, when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _keep_compilations() -> None:
    """Let the steps of a run, and later runs, share what XLA compiled (JAX's own settings win).

    The folder is of one host: compiled code fits the processor it was made for. It is this user's
    alone: JAX runs what it finds there.
    """
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return  # no home, no cache
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        folder = private(cache / "sims" / platform.node())
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
