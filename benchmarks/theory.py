"""Theory's own cost: problems in fresh processes, with nothing compiled before."""

import os
import subprocess
import sys
import time

import numpy as np

from benchmarks.machine import description, show
from sims.base.runtime import host_devices
from sims.problem import Heads, Task, TrigonometricSeries
from sims.problem.designs import isotropic
from sims.study.experiment import load_experiment
from sims.study.loading import load_study
from sims.theory import predict


def pairs() -> int:
    """Exact terms of all pairs of 8 unequal heads, d_k = 2, 32 queries, n = 1000."""
    rng = np.random.default_rng(0)
    frames = np.stack([np.linalg.qr(rng.normal(size=(8, 2)))[0] for _ in range(8)])
    target = TrigonometricSeries(
        rng.normal(size=16), 0.5 * rng.normal(size=(16, 8)), rng.uniform(0, 6, 16)
    )
    heads = Heads(frames, "gaussian", np.linspace(0.5, 0.9, 8))
    queries = 0.5 * rng.normal(size=(32, 8))
    return _checked([predict(Task(isotropic(8), target, 0.7), heads, 1000, queries, "exact")])


def closed_forms() -> int:
    """First-order terms of random heads in the Gaussian ones of 48 problems of `house`."""
    experiment = load_experiment("house")
    study, module = load_study(experiment), experiment.module("predict")
    drawn = [study.draw(k) for k in range(48)]
    gaussian = [p for p in drawn if p.law.family in module.GAUSSIAN]
    found = [module.first_order(p, p.queries(0)) for p in gaussian]
    return len(found)


def _checked(found) -> int:
    assert all(bool(data["converged"].all()) for data in found)
    return len(found)


CASES = {"pairs": pairs, "closed_forms": closed_forms}


def worker(name: str) -> None:
    """Points, wall and CPU seconds, imports left out."""
    start = time.perf_counter(), time.process_time()
    points = CASES[name]()
    print(points, time.perf_counter() - start[0], time.process_time() - start[1])


def main(repeats: int = 3) -> None:
    """Print the table: the best of some runs."""
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    rows = []
    for name, case in CASES.items():
        command = [sys.executable, "-c", f"from benchmarks.theory import worker; worker('{name}')"]
        runs = [
            subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            for _ in range(repeats)
        ]
        points, wall, cpu = np.array([r.stdout.split()[-3:] for r in runs], float).min(axis=0)
        rows.append([str(case.__doc__), f"{points:.0f}", f"{wall:.1f}", f"{cpu:.1f}"])
        print(rows[-1], flush=True)
    title = f"Theory, cold, on {host_devices()} cores"
    show(title, ("what", "points", "wall s", "CPU s"), rows, description())
