"""Texts, files and surroundings that nobody meant well: each works, or is one line at once."""

import io
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sims.base import files
from sims.base.documents import mapping
from sims.base.errors import InputError
from sims.inspect.report import FILE
from tests.cli.conftest import folder, refuses  # noqa: F401
from tests.cli.small import SPEC, changed
from tests.inspect.models import LAYOUTS, matrices, write

# Without digits, of which YAML 1.1 and 1.2 think differently.
WORDS = st.text("aé -:.,'\"\n#&*!?|>[]{}~<")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner),
)


@settings(max_examples=100, derandomize=True, deadline=1000)
@given(st.dictionaries(WORDS, VALUES).map(yaml.safe_dump) | WORDS.map("a: &a [1]\nb: ".__add__))
def test_a_text_is_read_as_yaml_says_or_refused(text):
    with suppress(InputError):
        assert mapping(text, "a.yaml") == yaml.load(text, yaml.CSafeLoader)


@pytest.fixture
def model(folder):  # noqa: F811
    """A small model, and files that name others."""
    write(folder / "model", LAYOUTS["llama"](*matrices(2)))
    Path("b.safetensors.index.json").write_text('{"weight_map": {"a": "a.safetensors"}}')
    rows = changed(SPEC, "problem.design", {"kind": "empirical", "file": "a.npy"})
    Path("rows.yaml").write_text(yaml.safe_dump(rows))


MAKERS = [os.mkfifo, os.mkdir, lambda name: os.symlink("/dev/zero", name)]
READERS = [
    "decompose a.yaml",
    "sweep a.yaml",
    "decompose rows.yaml",
    "sweep spec.yaml --output a.nc",
    "advise --data a.csv --target y",
    "advise --data a.npz",
    "inspect a.safetensors",
    "inspect b.safetensors.index.json",
    "inspect model --config a.json",
    "inspect model --heads 2 --activations a.npz",
    "inspect model --heads 2 --compare a.nc",
]


@pytest.mark.parametrize("make", MAKERS, ids=["pipe", "folder", "device"])
@pytest.mark.parametrize("command", READERS)
def test_what_is_no_file_is_not_opened(model, refuses, command, make):  # noqa: F811
    for suffix in ("yaml", "npy", "nc", "csv", "npz", "safetensors", "json"):
        make(f"a.{suffix}")
    refuses("a.", *command.split())


UNPACKERS = [command for command in READERS if command.endswith(("a.npz", "--compare a.nc"))]


@pytest.mark.parametrize("command", UNPACKERS)
def test_what_would_fill_the_memory_stays_packed(model, refuses, monkeypatch, command):  # noqa: F811
    monkeypatch.setattr(files, "LARGEST_UNPACKED", 10_000)
    zeros, netcdf = np.zeros(90_000), io.BytesIO()
    np.savez_compressed("a.npz", X=zeros)
    packed = xr.Dataset({"x": ("n", zeros)})
    packed.to_netcdf(netcdf, engine="h5netcdf", encoding={"x": {"zlib": True}})
    files.write(netcdf.getvalue(), "a.nc", FILE)
    refuses("bytes unpacked'; allowed: at most ", *command.split())


STREAMS = {
    "sweep spec.yaml 2>/dev/full": 0,
    "sweep spec.yaml <&- >&- 2>&-": 0,
    "experiments 2>&-": 0,
    "experiments >&-": 0,
    "experiments >/dev/full": 2,
    "decompose none.yaml 2>/dev/full": 2,
}


@pytest.mark.parametrize("line", STREAMS)
def test_a_stream_that_takes_nothing_ends_no_work(folder, line):  # noqa: F811
    command = f"{sys.executable} -m sims {line}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (STREAMS[line], False)
    assert Path("results/sweeps/spec.nc").exists() == ("sweep" in line)


@pytest.mark.parametrize("end", ["dict", "lambda: 1 / 0", "lambda: os.kill(os.getpid(), 15)"])
def test_what_stands_in_for_a_cache_goes_with_its_process(tmp_path, monkeypatch, end):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    text = f"import os; from sims.cli import commands, main; commands._names = {end}"
    command = [sys.executable, "-c", f"{text}; main(['experiments'])"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "using a temporary folder" in done.stderr
    assert not list(tmp_path.iterdir())
