"""Tables for people."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from traceback import extract_tb

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: bool = False
) -> None:
    """Print a table; no word or number is broken: rather the table is wider than the terminal."""
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row))
    # Names stay whole; sentences wrap, or they would leave the other columns no room.
    table.columns[0].no_wrap = numbers
    for column, *cells in zip(table.columns, columns, *rows, strict=True):
        column.overflow = "fold"
        column.min_width = max(map(len, " ".join(cells).split()))
    for column in table.columns[1:] if numbers else ():
        column.justify = "right"
    # A pipe has no width, and 80 characters are too few for a table.
    width = None if sys.stdout.isatty() and not numbers else 120
    Console(highlight=False, width=width).print(table, crop=False)


@contextmanager
def after_result(part: str) -> Iterator[None]:
    """Context of what is made after a result: its error is a line on stderr, not the command's end.

    Args:
        part: name of what is missing then.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:
            raise  # standard output is closed or full
        from sims.base.checks import error_summary

        frame = extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename}, line {frame.lineno}"
        print(f"{part}: left out ({error_summary(error)}; {place})", file=sys.stderr)
