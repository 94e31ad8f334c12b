"""What goes wrong with files and processes: it is noticed in one line, and nothing is lost."""

import errno
import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from sims.base import files, store
from sims.base.errors import InputError
from sims.report.text import html, render_caption
from sims.study import code, run
from sims.study.code import FORMATS
from tests.cli.conftest import folder  # noqa: F401
from tests.cli.small import run as sims
from tests.cli.small import write
from tests.pipeline import ROOT

STUDY = """
import time

import jax

from sims.montecarlo import HostReplicates, Replicates
from sims.study.study import Study
from sims.study.units import SampledUnit


def host(draw, shared, batch):
    time.sleep(0.04)
    with open("computed", "a") as log:
        print(draw.batch, draw.replicate, file=log)
    return {"x": draw.rng().normal(size=2)}


def traced(key, shared, batch):
    return {"x": jax.random.normal(key, (2,)) + batch}


def drawn(draw):
    time.sleep(0.2)
    return draw.rng().normal(size=2)


class Own(Study):
    def units(self):
        open("begun", "w").close()
        dims = {"dims": {"x": "side"}}
        return {
            "host": SampledUnit(HostReplicates(host, **dims)),
            "jax": SampledUnit(Replicates(traced, per_batch=drawn, **dims)),
        }

    def problem_digests(self):
        return {}
"""
RUN = """
import sys
from pathlib import Path
from sims.cli import main
from sims.base import store
store.SECONDS = 0.0
sys.exit(main(["step", "simulate", "small", "--fidelity", "smoke", "--output", sys.argv[1]]))
"""


def test_killed_and_resumed_equals_unbroken(tmp_path, monkeypatch):
    """Killed in one point, and asked to stop in the other; unbroken in another process."""
    monkeypatch.chdir(tmp_path)
    sizes = {"replicates_per_batch": 2, "batches": 10}
    write({"study.py": STUDY}, simulation=sizes)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SIMS_HOST_DEVICES": "1"}

    def begin(output):
        command = [sys.executable, "-c", RUN, output]
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    quiet = ("step", "simulate", "small", "--fidelity", "smoke", "--output", "quiet/simulation.nc")
    assert sims(*quiet) == 0
    (tmp_path / "computed").unlink()
    for point, left, how in (("host", 1, signal.SIGKILL), ("jax", 2, signal.SIGTERM)):
        begun, points = tmp_path / "begun", tmp_path / "broken" / ".points"
        begun.unlink()
        running = begin("broken/simulation.nc")
        deadline = time.monotonic() + 60
        while not begun.exists() or len(list(points.glob("*.npz"))) < left:
            assert running.poll() is None, point
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(0.3)
        running.send_signal(how)
        assert running.wait(60) == (75 if how == signal.SIGTERM else -how)
    assert begin("broken/simulation.nc").wait(60) == 0
    assert len((tmp_path / "computed").read_text().splitlines()) <= 20 + 2 * 2
    results = [xr.load_dataset(tmp_path / name / "simulation.nc") for name in ("quiet", "broken")]
    xr.testing.assert_equal(*results)


def test_a_truncated_altered_or_misplaced_file_is_noticed(folder, capsys, monkeypatch):  # noqa: F811
    monkeypatch.setitem(FORMATS, "smoke", FORMATS["standard"])
    run("small", "smoke")
    home = Path("results/smoke/small")
    assert sims("step", "ledger", "--fidelity", "smoke") == 0
    paths = [p for p in Path("results/smoke").rglob("*") if p.is_file()]
    assert len(paths) == 3 + 9 + 2 + 1  # the last are the seconds of a step
    rng = np.random.default_rng(0)
    for path in paths:
        read = files.read_json if path.suffix == ".json" else files.read
        whole = path.read_bytes()
        read(path)
        flipped = bytearray(whole)
        flipped[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        for damaged in (b"", whole[: len(whole) // 2], whole[:-1], whole + b"\n", bytes(flipped)):
            path.write_bytes(damaged)
            with pytest.raises(InputError, match="got 'damaged contents'; allowed: "):
                read(path)
        path.write_bytes(whole)
    theory, simulation = home / "theory.nc", home / "simulation.nc"
    kept = theory.read_bytes()
    theory.write_bytes(simulation.read_bytes())
    capsys.readouterr()
    assert sims("step", "tabulate", "small", "--fidelity", "smoke") == 2
    line = f"{theory}: got 'simulation.nc of small at smoke'; allowed: theory.nc of small at smoke"
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1
    theory.write_bytes(kept)
    first, second, _ = sorted(home.glob(".points/*"))
    first.write_bytes(second.read_bytes())  # another point's: it is computed again
    before = xr.load_dataset(simulation)
    assert sims("step", "simulate", "small", "--fidelity", "smoke") == 0
    assert f"{first}: got 'checkpoint {second.stem}'" in capsys.readouterr().err
    xr.testing.assert_equal(xr.load_dataset(simulation), before)


def test_a_full_disk_loses_nothing(tmp_path):
    path = tmp_path / "a/b.nc"
    files.write(b"old", path, "b")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(InputError, match=r"b\.nc: got 'File too large'; allowed: a file that"):
            files.write(bytes(20_000), path, "b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert files.read(path, "b") == b"old"
    assert [p.name for p in path.parent.iterdir()] == ["b.nc"]


@pytest.mark.parametrize(
    ("what", "number", "line"),
    [
        ("fsync of folders", errno.EINVAL, ""),
        ("fsync of folders", errno.EIO, "b.nc: got 'Input/output error'; allowed: a file that"),
        ("fchmod", errno.EPERM, ""),
        ("flock", errno.ENOSYS, ".snakemake: no file locks (Function not implemented): after"),
        ("flock", errno.ENOLCK, ".snakemake: no file locks (No locks available): after"),
        ("flock", errno.EWOULDBLOCK, "results/smoke: got 'in use by another run'"),
        ("date", 5, ""),  # the clocks of a cluster
        ("date", 3600, "b.nc: got 'dated "),
    ],
)
def test_a_poor_file_system_works_or_says_so(tmp_path, monkeypatch, capsys, what, number, line):
    """And takes no lock of another run away where it has no locks of its own."""

    def fail(handle, *_):
        if what != "fsync of folders" or stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))

    if what != "date":
        name = what.partition(" ")[0]
        monkeypatch.setattr(fcntl if name == "flock" else os, name, fail)
    monkeypatch.chdir(tmp_path)
    lock, path = Path(".snakemake/locks/0.input.lock"), tmp_path / "b.nc"
    lock.parent.mkdir(parents=True)
    lock.write_text("results/smoke/a.nc\n")
    try:
        files.write(b"new", path, "b")
        dated = time.time() + number * (what == "date")
        os.utime(path, (dated, dated))
        code.check_dates([path, tmp_path / "none"])
        code.lock_results("results/smoke")
    except InputError as error:
        print(error, file=sys.stderr)
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == bool(line)
    assert lock.exists() == bool(line)
    assert files.read(path, "b") == b"new"
    assert {p.name for p in tmp_path.iterdir()} == {"b.nc", ".snakemake"}


class Hostile:
    """Runs a program as it is unpickled."""

    def __reduce__(self):
        return (os.mkdir, ("PWNED",))


def test_reading_results_executes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", __layout__=np.array(Hostile(), object))
    files.write(Path("x.npz").read_bytes(), "x.npz", "checkpoint x")
    with pytest.raises(ValueError, match="allow_pickle"):
        store.load(Path("x.npz"))
    Path("caption.md").write_text("{{ ''.__class__.__mro__ }}")
    with pytest.raises(InputError, match=r"caption\.md"):
        render_caption(Path("caption.md"), "smoke", {}, {}, {})
    page = html("<script>alert(1)</script> ![](http://x.y/z.png)", lambda target: None)
    assert "<script" not in page
    assert "<img" not in page
    home = tmp_path / "cache"
    assert files.private_folder(home) == home
    home.chmod(0o770)  # others may put code there
    assert files.private_folder(home) != home
    assert not Path("PWNED").exists()
