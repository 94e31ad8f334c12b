"""Plausible mistakes, one at a time: does the test that should catch each of them fail?

The mistakes (mutants) stand in the ``*.yaml`` files beside, one file a room: in ``file`` the text
``old``, which occurs there once, becomes ``new``; ``tests`` should fail then; ``does`` says what is
wrong, and ``kind`` whether somebody thought of it (``hand``) or ``draw.py`` drew it
(``mechanical``). Slow tests run only where a mutant names nothing but single cases, ``test[case]``.
Nothing is changed but copies of the tree. Every run of pytest is forked from a process that has
imported the libraries already, none of the project: that is half of what a short test takes. In the
end the cases that failed are run once more, without any mistake: what fails there too catches none.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING

import yaml

from tests.environment import SETTINGS

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 300
"""After so long a run is stopped. A mistake that makes a program hang is caught."""
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-m")
MARKS = "not slurm and not gpu"
FORKS = multiprocessing.get_context("forkserver")
LIBRARIES = (
    "pytest", "yaml", "pydantic", "numpy", "scipy.integrate", "scipy.optimize", "scipy.stats",
    "xarray", "pandas", "jax", "jax.numpy", "equinox", "jaxtyping", "beartype", "hypothesis",
)  # fmt: skip
"""What the process that others are forked from imports: no array is made, so JAX starts nothing."""
FIRST, RESULT = (Path(__file__).parent / name for name in ("first_result.csv", "result.csv"))
"""What every mutant came to before any test was written for it, and when it was last recorded."""
NOT_RUN = "not run"
"""What became of a mistake whose turn came too late."""
PASSED, NO_TESTS = 0, 5
"""pytest's exit codes. Any other is that of a mistake which was caught, be it at an import."""


@dataclass(frozen=True)
class Mutant:
    """One mistake; the fields are those of the lists, and the list's name is the room."""

    id: str
    room: str
    file: str
    old: str
    new: str
    does: str
    tests: tuple[str, ...]
    kind: str

    def text(self, root: Path) -> str | None:
        """The file with the mistake, None if the old text does not occur exactly once."""
        path = root / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        return text.replace(self.old, self.new) if text.count(self.old) == 1 else None


def mutants() -> list[Mutant]:
    """All mistakes, room by room."""
    return [
        Mutant(room=path.stem, **entry | {"tests": tuple(entry["tests"])})
        for path in sorted(Path(__file__).parent.glob("*.yaml"))
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]


def recorded(path: Path) -> dict[str, str]:
    """Id to outcome in a record."""
    rows = path.read_text(encoding="utf-8").splitlines()[1:]
    return dict(row.split(",") for row in rows)


def record(outcomes: Mapping[str, str]) -> None:
    """Put outcomes into ``result.csv``; other rows stay as they are."""
    rows = sorted((recorded(RESULT) | outcomes).items())
    lines = ["id,outcome", *(f"{name},{outcome}" for name, outcome in rows)]
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Failures:
    """A plugin of pytest that writes the names of failed cases to a file, one a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("", encoding="utf-8")

    def pytest_runtest_logreport(self, report: "pytest.TestReport") -> None:
        """Add the name of a case that failed, or whose fixtures did."""
        if report.failed:
            with self.path.open("a", encoding="utf-8") as names:
                names.write(report.nodeid + "\n")


def outcome_of(mutant: Mutant, root: Path) -> tuple[str, tuple[str, ...]]:
    """What became of a mistake made in the copy of the tree at ``root``, and the tests to thank.

    The outcome is one of four words. The tests are the cases that failed, and all that the mutant
    names where none did: pytest found no case to run, or had to be stopped.
    """
    path, text = root / mutant.file, mutant.text(root)
    if text is None:
        return "does not apply", ()
    kept = root / "kept"
    shutil.copy2(path, kept)
    marks = MARKS if all(map(single_case, mutant.tests)) else f"not slow and {MARKS}"
    try:
        path.write_text(text, encoding="utf-8")
        more = native(root) if path.suffix in (".cc", ".h") else {}
        more["PYTHONDONTWRITEBYTECODE"] = "1"
        code = pytest_in(root, [*OPTIONS, marks, *mutant.tests], more, SECONDS)
    finally:
        kept.replace(path)  # with its old time, so that Python's own cache stays right
    if code in (PASSED, NO_TESTS):
        return {PASSED: "survived", NO_TESTS: "no tests"}[code], ()
    return "caught", tuple((root / "failed").read_text("utf-8").splitlines()) or mutant.tests


COMPILER = """\
#!/bin/sh
set -e
flags=-O1 objects=
while [ $# -gt 0 ]; do
  case $1 in
    *.cc) sources="$sources $1" ;;
    -o) out=$2; shift ;;
    -O*) ;;
    *) flags="$flags $1" ;;
  esac
  shift
done
for source in $sources; do
  object=$KEPT/$(cat "$source" "${source%/*}"/*.h | cksum | tr ' ' -).o
  [ -f "$object" ] || { "$REAL" $flags -c "$source" -o "$object.$$"; mv "$object.$$" "$object"; }
  objects="$objects $object"
done
"$REAL" $flags $objects -o "$out"
"""


def native(root: Path) -> dict[str, str]:
    """An environment whose C++ is compiled fast, for speed of the program that no test asks for.

    A source that has no mistake is compiled once for all. A library made of wrong sources is no
    cache for others.
    """
    compiler, kept = root / "compiler", root.parent / "objects"
    compiler.write_text(COMPILER, encoding="utf-8")
    compiler.chmod(0o700)
    kept.mkdir(exist_ok=True)
    real = os.environ.get("CXX") or shutil.which("c++") or "g++"
    own = {"XDG_CACHE_HOME": str(root / "cache"), "CXX": str(compiler)}
    return own | {"REAL": real, "KEPT": str(kept)}


def pytest_in(
    root: Path, asked: Sequence[str], more: Mapping[str, str], seconds: float | None = None
) -> int:
    """pytest's exit code in a copy of the tree, -1 if it had to be stopped."""
    fork = FORKS.Process(target=forked, args=(root, asked, {"PYTHONPATH": str(root), **more}))
    fork.start()
    fork.join(seconds)
    if fork.exitcode is None and fork.pid:
        os.killpg(fork.pid, signal.SIGKILL)
        return -1
    return -1 if fork.exitcode is None else fork.exitcode


def forked(root: Path, asked: Sequence[str], more: Mapping[str, str]) -> None:
    """Leave this process, a fork, for pytest in a copy of the tree; what it says goes to a file."""
    os.setsid()
    os.chdir(root)
    os.environ |= more
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in more
    with Path("output").open("w", encoding="utf-8") as output:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(output.fileno(), stream.fileno())
    import pytest

    code = int(pytest.main([*asked], plugins=[Failures(root / "failed")]))
    sys.stdout.flush()
    os._exit(code)


def single_case(test: str) -> bool:
    """Whether a test id names one case of a test."""
    return test.endswith("]")


def files_of(chosen: Sequence[Mutant]) -> list[str]:
    """The files of the tests that mistakes name."""
    return sorted({test.partition("::")[0] for mutant in chosen for test in mutant.tests})


def copied(root: Path) -> None:
    """A copy of the tree as it is, of what git knows and would know."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)


def main() -> int:
    """Run the mistakes that are asked for; 1 if one of them was not caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--room", help="those of one room")
    parser.add_argument("--only", nargs="+", help="those of these ids")
    parser.add_argument(
        "--count", type=int, help="so many, drawn by the seed of those known to be caught"
    )
    parser.add_argument(
        "--minutes", type=float, help="begin none later than this; the seed draws their order"
    )
    parser.add_argument("--seed", default="0", help="draws them: any text, such as a commit's hash")
    parser.add_argument("--workers", type=int, default=2, help="copies that work side by side")
    parser.add_argument("--record", action="store_true", help="write the outcomes to result.csv")
    asked = parser.parse_args()
    chosen = [
        m
        for m in mutants()
        if asked.room in (None, m.room) and (asked.only is None or m.id in asked.only)
    ]
    if asked.count is not None:
        known = recorded(RESULT)
        chosen = [mutant for mutant in chosen if known.get(mutant.id) == "caught"]
        chosen = random.Random(asked.seed).sample(chosen, min(asked.count, len(chosen)))
    if asked.minutes is not None:
        random.Random(asked.seed).shuffle(chosen)
    if not chosen:
        sys.exit(f"no mutants: got room {asked.room}, ids {asked.only}; see tests/mutants/*.yaml")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        cache = {"JAX_COMPILATION_CACHE_DIR": str(Path(folder, "jax"))}
        cache |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}
        os.environ.update(SETTINGS | os.environ | cache)
        FORKS.set_forkserver_preload([*LIBRARIES])
        first, roots = Path(folder, "0"), Queue[Path]()
        copied(first)
        # Compiled once, with the hook that checks shapes, since with a mistake nothing is kept.
        pytest_in(first, ["--collect-only", *OPTIONS, MARKS, *files_of(chosen)], {})
        for number in range(asked.workers):
            root = Path(folder, str(number))
            if number:
                shutil.copytree(first, root)
            roots.put(root)

        last = time.monotonic() + 60 * (float("inf") if asked.minutes is None else asked.minutes)

        def one(mutant: Mutant) -> tuple[str, tuple[str, ...]]:
            if time.monotonic() > last:
                return NOT_RUN, ()
            root, begun = roots.get(), time.monotonic()
            try:
                word, tests = outcome_of(mutant, root)
            finally:
                roots.put(root)
            print(f"{mutant.id:28} {word:14} {time.monotonic() - begun:5.1f} s", flush=True)
            return word, tests

        print(f"{len(chosen)} mutants", flush=True)
        with ThreadPoolExecutor(asked.workers) as pool:
            outcomes = list(pool.map(one, chosen))
        words = [word for word, _ in outcomes]
        tests = list(dict.fromkeys(test for _, failed in outcomes for test in failed))
        if tests:
            begun = time.monotonic()
            parallel = ["-n", str(asked.workers), "--dist", "worksteal"]
            if code := pytest_in(first, [*OPTIONS, MARKS, *parallel, *tests], {}):
                print((first / "output").read_text(encoding="utf-8")[-3000:], file=sys.stderr)
                sys.exit(f"pytest: exit code {code}; the tests have to pass without a mutant")
            print(f"without any, all pass: {time.monotonic() - begun:.0f} s", flush=True)
    run = {m: word for m, word in zip(chosen, words, strict=True) if word != NOT_RUN}
    if asked.record:
        record({mutant.id: word for mutant, word in run.items()})
    left = [(m, w) for m, w in run.items() if w != "caught"]
    print(f"{len(run) - len(left)} of {len(run)} caught, {len(chosen) - len(run)} not run")
    for mutant, word in left:
        print(f"{mutant.id}: {word}. {mutant.file}: {mutant.does}")
    return bool(left)


if __name__ == "__main__":
    sys.exit(main())
