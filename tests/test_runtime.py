"""Independent work in threads."""

import time

import pytest

from sims.runtime import in_threads


def test_results_keep_their_order():
    assert in_threads(lambda x: x * x, range(20)) == [x * x for x in range(20)]


def test_an_exception_stops_what_has_not_begun(monkeypatch):
    monkeypatch.setenv("SIMS_HOST_DEVICES", "1")
    seen = []

    def work(x):
        seen.append(x)
        if x == 1:
            raise ValueError("one")
        time.sleep(0.02)

    with pytest.raises(ValueError, match="one"):
        in_threads(work, range(200))
    assert len(seen) < 200
