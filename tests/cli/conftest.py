"""Shared by the tests of the command line: a small problem, an experiment of it, and a folder."""

import pytest
import yaml

from tests.cli.small import CAPTION, EFFECTS, EXPERIMENT, FIGURE, SPEC


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with one small experiment."""
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "experiments" / "small"
    own.mkdir(parents=True)
    (own / "experiment.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    (own / "effects.py").write_text(EFFECTS)
    (own / "figure.py").write_text(FIGURE)
    (own / "caption.md").write_text(CAPTION)
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(SPEC))
    return tmp_path
