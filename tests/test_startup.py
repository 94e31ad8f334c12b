"""What a start costs: programs compiled and libraries loaded (time itself is not tested)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REPORT = """
import sys
from sims.cli import main
code = main(sys.argv[1:])
print("loaded:", *sys.modules, file=sys.stderr)
sys.exit(code)
"""


def start(*arguments, cache):
    """A command in a process of its own: names of the programs compiled, libraries loaded."""
    environment = os.environ | {"JAX_LOG_COMPILES": "1", "XDG_CACHE_HOME": str(cache)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-c", REPORT, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    programs = re.findall(r"Finished XLA compilation of jit\((\w+)\)", done.stderr)
    loaded = done.stderr.rsplit("loaded:", 1)[1].split()
    return sorted(programs), set(loaded), done.stdout


@pytest.mark.timeout(300)
def test_decompose_compiles_its_two_roads_and_no_more(tmp_path):
    """Beside them rounding alone; a second start, with the first one's cache, says the same."""
    spec = "docs/examples/decompose.yaml"
    programs, loaded, printed = start("decompose", spec, cache=tmp_path)
    own = [name for name in programs if name != "_multi_slice"]  # JAX's: keys to several devices
    assert own == ["run_batches", "weigh_twice"]
    assert not loaded & {"matplotlib", "numpyro", "scipy.stats", "seaborn", "sklearn"}
    assert start("decompose", spec, cache=tmp_path)[2] == printed


def test_judgement_starts_without_jax():
    """Exponents need NumPyro, so they are imported where some are fitted and nowhere else."""
    code = "import sys, sims.cli.steps, sims.steps.judge; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert not {"jax", "numpyro", "matplotlib"} & set(loaded.stdout.split()), loaded.stderr
    assert "sims.judgement.answers" in loaded.stdout


def test_the_package_gives_its_names_when_they_are_used():
    """``import sims`` loads none of them; each is the one of its room, and a wrong name is said."""
    code = (
        "import sys; at_start = set(sys.modules); import sims\n"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - at_start}\n"
        "before = loaded - {'sims'} - sys.stdlib_module_names\n"
        "from sims import *\n"
        "assert not before, before\n"
        "assert Task is sims.problem.Task and estimate is sims.simulation.estimate\n"
        "assert predict is sims.theory.predict and run is sims.study.run\n"
        "assert all(callable(getattr(sims, name)) or name.isupper() for name in sims.__all__)\n"
        "assert set(sims.__all__) <= set(dir(sims))\n"
        "try: sims.estimates_\n"
        "except AttributeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "module 'sims' has no attribute 'estimates_'"
