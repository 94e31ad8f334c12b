"""What the file system refuses ends in one line, exit code 2, and no temporary file."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from sims import files
from sims.errors import InputError
from tests.cli.small import run

SIMS = (sys.executable, "-m", "sims")
REPO = Path(__file__).parents[2]


@contextmanager
def largest(size):
    """No file may grow beyond this, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture
def mounted(folder):
    """``mounted(options)``: a small file system of its own at ``results``."""

    def mount(options, remount=False):
        options = f"remount,{options}" if remount else options
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", "results"]
        Path("results").mkdir(exist_ok=True)
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("only root can mount")

    yield mount
    subprocess.run(["umount", folder / "results"], capture_output=True)


def _tree(folder):
    return {p for p in Path(folder).rglob("*") if p.is_file()}


def test_a_file_is_whole_or_the_old_one(tmp_path):
    path = tmp_path / "a" / "b.nc"
    files.write(b"old", path, "b")
    refused = pytest.raises(InputError, match=r"b\.nc: got 'File too large'; allowed: a file that")
    with largest(10_000), refused:
        files.write(bytes(20_000), path, "b")
    assert files.read(path, "b") == b"old"
    assert _tree(tmp_path) == {path}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("made", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_only_files_are_read(tmp_path, made):
    made(tmp_path / "b.json")
    for read in (files.read, files.read_json):
        with pytest.raises(InputError, match=r"b\.json: got 'no regular file'"):
            read(tmp_path / "b.json")


def test_what_is_written_is_on_the_disk_before_it_is_there(tmp_path, monkeypatch):
    """fsync of the file, then rename, then fsync of the folder."""
    calls = []

    def noted(name):
        real = getattr(os, name)

        def call(first, *rest):
            kind = os.path.isdir(f"/dev/fd/{first}") if name == "fsync" else None
            calls.append({None: name, True: "fsync folder", False: "fsync file"}[kind])
            return real(first, *rest)

        monkeypatch.setattr(os, name, call)

    noted("fsync")
    noted("replace")
    files.write(b"new", tmp_path / "b.nc", "b")
    assert calls == ["fsync file", "replace", "fsync folder"]


@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod"])
def test_nothing_temporary_is_left(tmp_path, monkeypatch, call):
    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(InputError, match="got 'Input/output error'"):
        files.write(b"new", tmp_path / "b.nc", "b")
    assert not _tree(tmp_path)


STEPS = [("simulate", "small"), ("predict", "small"), ("judge", "small"), ("plot", "small"),
         ("ledger",), ("report",), ("publish",)]  # fmt: skip


def _finished():
    for step in STEPS[:-1]:
        assert run(*step, "--fidelity", "smoke") == 0


def _refused(capsys, step, words):
    capsys.readouterr()
    before = {p: p.read_bytes() for p in _tree("results")}
    assert run(*step, "--fidelity", "smoke") == 2, step
    lines = [x for x in capsys.readouterr().err.splitlines() if not x.startswith("small: ")]
    assert len(lines) == 1, lines
    assert words in lines[0]
    assert {p: p.read_bytes() for p in _tree("results")} == before


def test_no_room_is_one_line(folder, capsys):
    """Every step, once its results are gone and its disk is full: nothing is left but what was."""
    _finished()
    for step in STEPS:
        kept = {p: p.read_bytes() for p in _tree("results")}
        for path in _tree(f"results/smoke/{step[1]}/.points") if step[0] == "simulate" else ():
            path.unlink()
        with largest(300):
            _refused(capsys, step, "got 'File too large'; allowed: a file that can be written")
        for path, data in kept.items():
            path.write_bytes(data)


@pytest.mark.faults
def test_a_full_and_a_read_only_file_system(folder, capsys, mounted):
    """With real ones; whoever may not mount any has the test above."""
    mounted("size=16m")
    _finished()
    shutil.rmtree("results/smoke/small/.points")
    Path("results/filler").write_bytes(bytes(shutil.disk_usage("results").free))
    for step in STEPS:
        _refused(capsys, step, "got 'No space left on device'")
    Path("results/filler").unlink()
    mounted("ro", remount=True)
    for step in STEPS:
        words = "Read-only file system" if step[0] == "publish" else "cannot take one"
        _refused(capsys, step, words)


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "a\0b"), ("predict", "small", "--output", "a\0b"),
        ("ledger", "--output", "a\0/b"), ("decompose", "experiments"), ("decompose", "a" * 300),
        ("simulate", "a" * 300), ("predict", "small", "--output", "a" * 300),
        ("predict", "small", "--output", "spec.yaml/a.nc"), ("decompose", "loop"),
        ("predict", "small", "--output", "loop"), ("predict", "small", "--output", "loop/a.nc"),
        ("ledger", "--output", "experiments"), ("report", "--output", "/dev/full"),
        ("ledger", "--output", "/dev/stdout"), ("predict", "small", "--output", "/proc/a/b.nc"),
    ],
)  # fmt: skip
def test_what_is_no_usable_path_is_one_line(folder, capsys, arguments):
    Path("loop").symlink_to("loop")
    before = _tree(folder)
    assert run(*arguments) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1, err
    assert _tree(folder) - before <= {p for p in _tree(folder) if ".points" in p.parts}


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000, b"null", b"[{}]"])
def test_what_is_no_ledger_is_one_line(folder, capsys, content):
    home = Path("results/smoke/small")
    home.mkdir(parents=True)
    for path in (Path("results/smoke/ledger.json"), home / "verdicts.json"):
        path.write_bytes(content)
    for command in ("claims", "report", "seeds", "ledger"):
        assert run(command, "--fidelity", "smoke") == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1, err
        assert ".json: got" in err


@pytest.mark.parametrize("what", ["caption.md", "effects.py", "figure.py", "experiment.yaml"])
def test_a_folder_in_the_place_of_a_file_is_one_line(folder, capsys, what):
    _finished()
    path = Path("experiments/small", what)
    path.unlink()
    path.mkdir()
    capsys.readouterr()
    command = "judge" if what == "effects.py" else "plot"
    assert run(command, "small", "--fidelity", "smoke") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_nobody_reads_on():
    """``sims schema | head -1`` ends quietly; a full device in the pipe's place is one line."""
    for command in ("schema", "claims", "experiments"):
        reader, writer = os.pipe()
        os.close(reader)
        closed = subprocess.run(
            [*SIMS, command], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=REPO
        )
        os.close(writer)
        assert (closed.returncode, closed.stderr) == (0, "")
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [*SIMS, command], stdout=full, stderr=subprocess.PIPE, text=True, cwd=REPO
            )
        assert done.returncode == 2
        assert done.stderr == (
            f"sims {command}: standard output: got 'No space left on device'; "
            "allowed: what can be read or written\n"
        )
