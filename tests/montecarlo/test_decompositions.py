"""Programs that decompose many matrices at once come to an end: on one device of a CPU."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims.montecarlo.decompositions import waits_for_threads

STACK = jax.ShapeDtypeStruct((500, 6, 4), np.float64)
"""500 · 6 · 4 · 4 = 48,000 multiplications."""
BRANCH = {False: jnp.sum, True: lambda a: jnp.abs(jnp.linalg.qr(a)[1]).sum()}

STACKED = {
    "svd": lambda a: jnp.linalg.svd(a, compute_uv=False),
    "determinant": lambda a: jnp.linalg.slogdet(a[:, :4])[1],
    "mapped": lambda a: jax.vmap(lambda one: jnp.linalg.qr(one)[0])(a),
    "in a branch": lambda a: jax.lax.cond(a[0, 0, 0] > 0, BRANCH[True], BRANCH[False], a),
    "as long as": lambda a: jax.lax.while_loop(
        lambda b: b[0, 0, 0] > 0, lambda b: jnp.linalg.qr(b)[0], a
    ),
    "in a gradient": lambda a: jax.grad(lambda b: jnp.linalg.slogdet(b[:, :4])[1].sum())(a),
}
LEFT = {
    "small ones": lambda a: jnp.linalg.qr(a[:200])[0],
    "a single one": lambda a: jnp.linalg.qr(a.reshape(1500, 8))[0],
    "one after another": lambda a: jax.lax.map(lambda one: jnp.linalg.qr(one)[0], a),
    "products": lambda a: a @ a.mT,
}


@pytest.mark.parametrize("name", STACKED)
def test_large_stacks_are_found_wherever_they_are(name):
    """Whatever the decomposition, mapped or not, in loops, branches and gradients."""
    assert waits_for_threads(jax.make_jaxpr(jax.jit(STACKED[name]))(STACK).jaxpr)


@pytest.mark.parametrize("name", LEFT)
def test_other_programs_keep_all_devices(name):
    """19,200 multiplications are few; a single matrix is not shared out, nor is a product."""
    assert not waits_for_threads(jax.make_jaxpr(jax.jit(LEFT[name]))(STACK).jaxpr)


STANDSTILL = """
import jax, jax.numpy as jnp
from sims.montecarlo import Replicates, run
def one(key, shared, batch):
    def step(total, key):
        stack = jax.random.normal(key, (448, 12, 12))
        return total + jnp.linalg.slogdet(stack)[1].sum(), None
    return {"x": jax.lax.scan(step, 0.0, jax.random.split(key, 20))[0]}
data = run(Replicates(one), 1, replicates_per_batch=4, batches=4)
print(data.sizes["batch"], data.attrs["device_count"])
"""


@pytest.mark.timeout(120)
def test_a_run_that_stood_still_comes_to_an_end():
    """Two devices with a thread each: jaxlib 0.10.2 stood still at every try."""
    done = subprocess.run(
        [sys.executable, "-c", STANDSTILL],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"SIMS_HOST_DEVICES": "2", "NPROC": "2"},
    )
    assert done.stdout.split() == ["4", "1"], done.stderr
