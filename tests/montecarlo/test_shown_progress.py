"""A run's progress: a bar on a terminal where it is asked for, and nothing where it is not."""

import io
import sys

import pytest

from sims.montecarlo.progress import Progress


class Stream(io.StringIO):
    """Where a program writes, be it a terminal or not."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("show", [True, False])
def test_a_bar_is_drawn_where_it_is_asked_for_on_a_terminal(monkeypatch, show, terminal):
    stream = Stream(terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(10, show=show) as progress:
        progress.update(4)
        assert (progress.bar is not None) == (show and terminal)
    assert show or stream.getvalue() == ""
