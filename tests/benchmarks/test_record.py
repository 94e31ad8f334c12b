"""A ratio that moved beyond the stated noise is said to have moved, and no other."""

import json

from benchmarks import record


def test_what_moved_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "PATH", tmp_path / "record.json")
    before = {"a": 10.0, "b": 10.0, "c": 10.0}
    record.compare(before, renew=True)
    assert "a is" not in capsys.readouterr().out
    beyond = 1.01 * record.NOISE
    record.compare(
        {"a": 10 * beyond, "b": 10 / beyond, "c": 9.0 * record.NOISE, "d": 1.0}, renew=False
    )
    assert "a is higher; b is lower." in capsys.readouterr().out
    assert json.loads(record.PATH.read_text())["ratios"] == before
