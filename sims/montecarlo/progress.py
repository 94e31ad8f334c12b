"""Progress of long work on stderr: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import Any

_SECONDS = 10.0


class Progress:
    """A context in which ``update(done)`` shows how many batches are done; silent unless asked."""

    def __init__(self, total: int, done: int = 0, show: bool = False) -> None:
        self.total, self.show = total, show
        self.bar: Any = None
        self.first, self.begun = done, time.monotonic()
        self.told = self.begun

    def __enter__(self) -> "Progress":
        if self.show and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar

            self.bar = Bar(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task("batches", total=self.total, completed=self.first)
        return self

    def update(self, done: int) -> None:
        """Tell that ``done`` batches are done."""
        if self.bar is not None:
            self.bar.update(self.task, completed=done)
        elif self.show and time.monotonic() - self.told >= _SECONDS:
            self.told = time.monotonic()
            rate = (done - self.first) / (self.told - self.begun)
            line = f"batches {done} of at most {self.total}, {rate:.3g}/s"
            print(line, file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
