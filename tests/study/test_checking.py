"""Whose an error is: an experiment's own code, of which it is a line, or the suite's."""

import importlib.util

import pytest
import xarray as xr

from sims.errors import InputError
from sims.study.checking import own_code
from sims.terms import add_mcse

CODE = """
import numpy as np

from sims.terms import add_mcse


def key(settings):
    return settings["absent"]


def library(settings):
    return np.zeros(2).reshape(settings["shape"])


def suite(settings):
    return add_mcse(settings)
"""


@pytest.fixture
def code(tmp_path):
    """The module of an experiment's folder."""
    path = tmp_path / "effects.py"
    path.write_text(CODE)
    spec = importlib.util.spec_from_file_location("effects_of_its_own", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "line", "got"), [
    ("key", 8, "KeyError: 'absent'"), ("library", 12, "ValueError: cannot reshape"),
])  # fmt: skip
def test_errors_of_own_code_are_named_with_its_innermost_line(code, tmp_path, name, line, got):
    """Be it raised there or in a library that is called there."""
    with pytest.raises(InputError) as caught, own_code(tmp_path):
        getattr(code, name)({"shape": 3})
    assert caught.value.field == f"{tmp_path / 'effects.py'}, line {line}"
    assert caught.value.value.startswith(got)


def test_errors_of_the_suite_are_left_as_they_are(code, tmp_path):
    """Called by an experiment's code, or by none."""
    wrong = xr.Dataset({"mse": ("batch", ["a", "b"])})
    for call in (code.suite, add_mcse):
        with pytest.raises((TypeError, ValueError)) as caught, own_code(tmp_path):
            call(wrong)
        assert not isinstance(caught.value, InputError)
