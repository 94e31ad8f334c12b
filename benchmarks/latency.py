"""What a user waits for: commands, predictions of many problems, the fixed cost of an estimate.

CPU seconds, in processes of their own, and as a share of what starting JAX and xarray takes in the
same run: that ratio depends little on the machine.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import description, show
from benchmarks.problem import Work
from sims.problem import Heads
from sims.simulation import estimate
from sims.study.sweepfile import DecomposeSpec, parse_file, read_problem
from sims.theory import predict

SPEC = str(Path(__file__).parents[1] / "docs/examples/decompose.yaml")
START = "start of JAX and xarray"
SWEEP = {
    "simulation": {"batches": 8, "replicates_per_batch": 16},
    "sweep": {
        "grid": {
            "heads.bandwidth": {"low": 0.4, "high": 1.6, "points": 6},
            "noise_sd": [0.25, 0.5, 0.75, 1.0],
        }
    },
}
"""Of the same problem, 24 points."""


def predictions() -> float:
    """CPU seconds of `predict` for 100 bandwidths of one problem."""
    task, heads, n, queries = parse_file(DecomposeSpec, read_problem(SPEC), SPEC).problem.build()
    every = [Heads(heads.frames, "gaussian", b) for b in np.linspace(0.5, 1.5, 100)]
    predict(task, heads, n, queries)
    begun = time.process_time()
    for heads in every:
        predict(task, heads, n, queries)
    return time.process_time() - begun


def fixed_cost() -> float:
    """CPU seconds of `estimate` for 64 queries, 16 keys and 4 replicates: the best of 40."""
    work = Work(n=16)
    task, heads, queries = work.problem()
    took = []
    for seed in range(41):
        begun = time.process_time()
        estimate(task, heads, work.n, queries, seed, batches=2, replicates_per_batch=2)
        took.append(time.process_time() - begun)
    return min(took[1:])


def main(repeats: int = 5) -> dict[str, float]:
    """Print the table; shares of a start are returned, as ``start/it``: more is better."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sweep.yaml").write_text(json.dumps(read_problem(SPEC) | SWEEP))
        commands = {
            START: ("-c", "import jax, xarray"),
            "sims decompose, nothing compiled": ("-m", "sims", "decompose", SPEC),
            "sims decompose": ("-m", "sims", "decompose", SPEC),
            "sims sweep, 24 points": ("-m", "sims", "sweep", "sweep.yaml"),
        }
        seconds = dict.fromkeys(commands, float("inf"))
        for turn in range(repeats + 1):
            for name, command in commands.items():
                cache = f"{folder}/{turn if 'nothing' in name else 'cache'}"
                environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
                before = _children()
                subprocess.run(
                    [sys.executable, *command],
                    check=True,
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                )
                if turn:  # the first fills the cache
                    seconds[name] = min(seconds[name], _children() - before)
    seconds |= {
        "predict of 100 problems": min(predictions() for _ in range(repeats)),
        "estimate of next to nothing": fixed_cost(),
    }
    rows = [
        [name, f"{value:.3g}", f"{seconds[START] / value:.3g}"] for name, value in seconds.items()
    ]
    show("What a user waits for", ("", "CPU s", "start ÷ it"), rows, description())
    return {f"start ÷ {name}": seconds[START] / seconds[name] for name in seconds if name != START}


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
