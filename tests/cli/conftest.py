"""Shared by the tests of the command line: a working directory with a small problem."""

from functools import partial

import pytest
import yaml

from tests.cli.small import SPEC, refused, write


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the small problem and its experiment, which has no code."""
    monkeypatch.chdir(tmp_path)
    write()
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(SPEC))
    return tmp_path


@pytest.fixture
def refuses(folder, capsys, recwarn):
    """``refuses(words, *command)`` in that directory (:func:`tests.cli.small.refused`)."""
    return partial(refused, capsys, recwarn)
