"""Progress of long work on stderr: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import Any

_SECONDS = 10.0


class Progress:
    """A context in which ``update(done)`` shows how much is done; silent unless asked.

    Attributes:
        total: how much there is to do, at most.
        done: how much of it is done already.
        show: whether to show it.
        what: there is to do.
    """

    def __init__(
        self, total: int, done: int = 0, show: bool = False, what: str = "batches"
    ) -> None:
        self.total, self.show, self.what = total, show, what
        self.bar: Any = None
        self.first, self.begun = done, time.monotonic()
        self.told = self.begun

    def __enter__(self) -> "Progress":
        if self.show and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar

            self.bar = Bar(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task(self.what, total=self.total, completed=self.first)
        return self

    def update(self, done: int, total: int | None = None) -> None:
        """Tell that so much is done, of another total if that is known only now."""
        self.total = self.total if total is None else total
        if self.bar is not None:
            self.bar.update(self.task, completed=done, total=self.total)
        elif self.show and time.monotonic() - self.told >= _SECONDS:
            self.told = time.monotonic()
            rate = (done - self.first) / (self.told - self.begun)
            line = f"{self.what} {done} of at most {self.total}, {rate:.3g}/s"
            print(line, file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
