"""Progress of long work as a bar on stderr."""

from typing import Any


class Progress:
    """A context in which ``update(done)`` shows how much is done; silent unless asked.

    Args:
        total: how much there is to do, at most.
        done: how much of it is done already.
        show: whether to show it.
        what: there is to do.
    """

    def __init__(
        self, total: int, done: int = 0, show: bool = False, what: str = "batches"
    ) -> None:
        self.bar: Any = None
        if show:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self.bar = Bar(console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task(what, total=total, completed=done)

    def __enter__(self) -> "Progress":
        if self.bar is not None:
            self.bar.start()
        return self

    def update(self, done: int, total: int | None = None) -> None:
        """Tell that so much is done, of another total if that is known only now."""
        if self.bar is not None:
            self.bar.update(self.task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
