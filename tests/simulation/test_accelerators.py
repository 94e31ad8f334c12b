"""Both methods compile for devices that are absent, by the compiler on a CPU."""

import jax
import pytest
from jax import export

from sims.montecarlo import compiled
from sims.simulation import estimate
from sims.theory.first_order.closed_forms import first_order_arrays
from sims.weights import FACTORIES

ELSEWHERE = ["cuda", "tpu"]


@pytest.mark.parametrize("rule", ["gaussian", FACTORIES["sparsemax"]()])
def test_both_roads_lower_for_a_gpu_and_a_tpu(make, monkeypatch, rule):
    task, heads, queries = make(kernel=rule)
    run, programs = compiled.run_batches, []

    def lowered(*arguments, mesh):
        programs.append(export.export(run, platforms=ELSEWHERE)(*arguments, mesh=mesh))
        return run(*arguments, mesh=mesh)

    monkeypatch.setenv("SIMS_NATIVE", "0")
    monkeypatch.setattr(compiled, "run_batches", lowered)
    one = jax.devices()[:1]
    estimate(task, heads, 64, queries, 0, batches=2, replicates_per_batch=2, devices=one)
    assert programs
    if rule == "gaussian":
        export.export(first_order_arrays, platforms=ELSEWHERE)(task, heads, 64, queries)
