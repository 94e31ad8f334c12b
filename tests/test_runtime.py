"""Independent work in threads, and arithmetic that is coarser than asked for."""

import os
import subprocess
import sys
import time

import jax
import pytest

from sims.base.runtime import (
    configure,
    forget_compiled,
    host_devices,
    in_threads,
    lost_digits,
    memory,
)


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


@pytest.mark.parametrize(
    ("ours", "slurms", "found"),
    [(None, None, 6), (None, "4", 4), (None, "8", 6), (None, "", 6), ("2", "4", 2), ("8", "4", 8)],
)
def test_cores_are_those_allotted(monkeypatch, ours, slurms, found):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(6)))
    for name, value in (("SIMS_HOST_DEVICES", ours), ("SLURM_CPUS_PER_TASK", slurms)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert host_devices() == found


@pytest.mark.parametrize(("own", "threads"), [(None, "3"), ("1", "1")])
def test_as_many_threads_as_devices(monkeypatch, own, threads):
    """Unless it was said how many."""
    assert jax.devices()  # JAX has started: devices stay what they are
    monkeypatch.setenv("SIMS_HOST_DEVICES", "3")
    monkeypatch.delenv("NPROC", raising=False)
    if own is not None:
        monkeypatch.setenv("NPROC", own)
    configure()
    assert os.environ["NPROC"] == threads


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the platform is there")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLATFORMS", "cuda"),
        ("PLATFORM_NAME", "gpu"),
        ("LOG_COMPILES", "x"),
    ],
)
def test_a_variable_of_jax_that_cannot_be_is_one_line(name, value):
    """Of the command, an InputError of Python; and again at the second try."""
    own = os.environ | {f"JAX_{name}": value, "PYTHONPATH": os.pathsep.join(sys.path)}
    code = """
from sims.cli import main
try:
    import sims.problem
except ValueError:
    raise SystemExit(main(["decompose", "docs/examples/decompose.yaml", "--dry"]))
"""
    found = subprocess.run([sys.executable, "-c", code], env=own, capture_output=True, text=True)
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)
    assert f"JAX_{name}" in found.stderr


def test_lost_digits_are_named():
    assert lost_digits("cpu") == lost_digits("gpu") == []
    with jax.default_matmul_precision("tensorfloat32"):
        assert lost_digits("cpu") == []
        assert "TF32" in lost_digits("gpu")[0]
    with jax.enable_x64(False):
        assert "64-bit arithmetic is off" in lost_digits("cpu")[0]


@pytest.mark.parametrize(
    ("own", "limits"),
    [
        ("0::/", {"memory.max": "3000"}),
        ("0::/slurm/job_7/step_0", {"slurm/job_7/memory.max": "3000", "slurm/memory.max": "max"}),
        ("0::/a/b", {"a/memory.max": "3000", "a/b/memory.max": "4000"}),
    ],
    ids=["container", "job", "nested"],
)
def test_memory_is_what_the_control_group_allows(tmp_path, own, limits):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(own + "\n")
    assert memory(tmp_path) > 1e6
    for name, limit in limits.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(limit + "\n")
    memory.cache_clear()  # it is read once
    assert memory(tmp_path) == 3000


def test_compiled_programs_are_forgotten_before_mappings_run_out(tmp_path, monkeypatch):
    """The programs of many experiments in one process came to Linux's limit, and killed it."""
    cleared = []
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(1))
    forget_compiled(tmp_path)  # a system without such a limit
    for folder in ("self", "sys/vm"):
        (tmp_path / "proc" / folder).mkdir(parents=True)
    (tmp_path / "proc/sys/vm/max_map_count").write_text("10\n")
    for second, held, forgotten in ((1, 5, 0), (1, 6, 0), (2, 6, 1), (3, 6, 2)):
        monkeypatch.setattr("time.monotonic", lambda second=second: second + 0.5)
        (tmp_path / "proc/self/maps").write_text("7f00-7f01 r-xp\n" * held)
        forget_compiled(tmp_path)  # not within the same second
        assert len(cleared) == forgotten
