"""Measurements on a lent machine: kept, gone on with, and put on a page."""

import math
import sys

import pytest

from benchmarks import gpu
from benchmarks.pieces import OutOfTime, Pieces

HERE = {"device": "a GPU", "jax": "0"}


def test_what_was_measured_is_not_measured_again(tmp_path):
    made = []

    def measure(name):
        made.append(name)
        return {"rate": 1.5, "error": None}

    path = tmp_path / "gpu.json"
    for seconds in (0.0, 100.0):
        pieces = Pieces(path, HERE, seconds, reserve=50.0)
        if seconds < 50:
            with pytest.raises(OutOfTime, match="first"):
                pieces("first", lambda: measure("first"))
            continue
        first = pieces("first", lambda: measure("first"))
    assert made == ["first"]
    later = Pieces(path, HERE, 0.0)
    again = later("first", lambda: measure("first"))
    assert made == ["first"]
    assert again == first == {"rate": 1.5, "error": None}
    elsewhere = Pieces(path, HERE | {"device": "another GPU"}, 100.0)
    elsewhere("first", lambda: measure("elsewhere"))
    assert made == ["first", "elsewhere"]


def _options(monkeypatch, tmp_path):
    """Every measurement replaced by a number; returns the names asked for and a caller."""
    asked = []
    sizes = []

    def error(kernel, *_):
        asked.append(f"error {kernel}")
        return 1e-6

    def rate(sums, *_):
        tile = getattr(sums, "keywords", {}).get("tile")
        sizes.append(tile)
        return 1.0 if tile is None else 2.0 + (tile == gpu.Tile(2, 64, 2))

    monkeypatch.setattr(gpu, "error", error)
    monkeypatch.setattr(gpu, "rate", rate)
    monkeypatch.setattr(gpu, "engine_rate", lambda sums, work: 5.0)
    monkeypatch.setattr(gpu, "sweep", lambda sums, work: {"busy": 0.9, "evaluations/s": 7.0})
    monkeypatch.setattr(gpu, "at_paper", lambda pieces, name, folder: {"minutes": 2.0})
    monkeypatch.setattr(gpu.jax, "devices", lambda: [type("", (), DEVICE)])
    monkeypatch.setattr(sys, "argv", ["gpu", "--output", str(tmp_path)])
    return asked, sizes


def test_a_run_at_paper_fidelity_is_a_command_that_exists(monkeypatch, tmp_path):
    """In a folder of its own, with experiments of the checkout; here it only says what it does."""
    popen = gpu.subprocess.Popen
    monkeypatch.setattr(gpu.subprocess, "Popen", lambda c, **o: popen([*c, "--dry"], **o))
    pieces = Pieces(tmp_path / "gpu.json", HERE, 600.0)
    assert set(gpu.at_paper(pieces, "angles", tmp_path)) == {"minutes"}
    assert "failed" in gpu.at_paper(pieces, "no_such_experiment", tmp_path)


DEVICE = {"platform": "gpu", "device_kind": "a GPU"}


def test_the_page_has_the_best_tile_and_every_experiment(monkeypatch, tmp_path):
    asked, sizes = _options(monkeypatch, tmp_path)
    assert gpu.main() == 0
    assert len(asked) == len(gpu.KERNELS)
    assert len(sizes) == 1 + len(gpu.TILES)
    page = (tmp_path / "gpu.md").read_text()
    assert "| Pallas, tile 2 × 64, 2 warps | 3 | 3.00 |" in page
    assert "| Pallas, tile 2 × 64, 2 warps | 90% | 7 |" in page
    assert "| angles | 2.0 |" in page
    assert gpu.main() == 0
    assert len(sizes) == 1 + len(gpu.TILES)


def test_a_call_ends_in_time_and_the_next_goes_on(monkeypatch, tmp_path):
    asked, _ = _options(monkeypatch, tmp_path)
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--minutes", "0.5"])
    assert gpu.main() == 75
    assert asked == []


def test_a_wrong_sum_ends_it(monkeypatch, tmp_path, capsys):
    _options(monkeypatch, tmp_path)
    monkeypatch.setattr(gpu, "error", lambda *_: math.nan)
    assert gpu.main() == 1
    assert "WRONG" in capsys.readouterr().out
    assert "WRONG" in (tmp_path / "gpu.md").read_text()
