"""What ``SIGTERM`` means to a command: save what there is, and leave to be called again."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

GO_ON = 75
"""Exit code of a command that was asked to stop: EX_TEMPFAIL, the same command goes on."""


class Stopped(BaseException):
    """The process was asked to end; raised wherever it is, so that what runs saves its work."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Within, the first ``SIGTERM`` raises :class:`Stopped`; later ones are passed over."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing disturbs the saving
        raise Stopped

    before = None
    with suppress(ValueError):  # signals are the main thread's
        before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
