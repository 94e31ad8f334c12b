"""How far a command is: a bar on a terminal, and in other places a phrase for a line a minute."""

from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

from rich.console import Console
from rich.progress import Progress

Item = TypeVar("Item")
_ACTIVE: list[Progress] = []
"""Bars of work that is under way, the outermost first, shown or not."""


class Bar(Progress):
    """Progress of a piece of work, which :func:`phrase` tells.

    Args:
        shown: whether a bar on stderr shows it, too.
    """

    def __init__(self, shown: bool) -> None:
        super().__init__(console=Console(stderr=True), transient=True, disable=not shown)

    def __enter__(self) -> Self:
        _ACTIVE.append(self)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        _ACTIVE.remove(self)
        super().__exit__(*error)


def followed(items: Iterable[Item], name: str, shown: bool) -> Iterator[Item]:
    """The items, with a bar of how many are done."""
    with Bar(shown) as bar:
        yield from bar.track(items, description=name)


def phrase() -> str:
    """How far all work under way is, such as ``unit 3 of 40, batches 5 of 16``."""
    tasks = [task for bar in tuple(_ACTIVE) for task in bar.tasks]
    return ", ".join(f"{task.description} {task.completed:g} of {task.total:g}" for task in tasks)
