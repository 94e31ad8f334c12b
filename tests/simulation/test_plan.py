"""The memory budget: what is planned obeys it, and what is compiled obeys the plan."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

from sims.montecarlo import Draw
from sims.montecarlo.compiled import Program, run_batches
from sims.simulation.all_keys import weigh_all_keys
from sims.simulation.draws import DRAW_BLOCK
from sims.simulation.ensemble import join_groups
from sims.simulation.moments import BATCH_ESTIMATES
from sims.simulation.plan import RULE_ARRAYS, Shape, make_plan, working_set
from sims.simulation.replicate import Settings, Shared, replicate
from sims.weights import RULES
from tests.by_hand import refused

LARGE = Shape(queries=4096, heads=16, dimension=64, width=4, terms=64, n=10**6, itemsize=4)


@pytest.mark.parametrize("budget", [2**26, 2**28, 2**30])
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_plan_obeys_the_budget(budget, platform):
    plan = make_plan(LARGE, 64, 4, budget=budget, platform=platform)
    share = budget // 4 if platform == "cpu" else budget
    need = working_set(LARGE, *plan[:4])
    assert need == plan.bytes_per_device <= share
    assert plan.group % plan.query_block == 0
    assert 64 % plan.at_once == 0


def test_many_queries_go_in_equal_groups():
    """Not in tiny blocks, although the budget would allow those: on a CPU the sums go in groups."""
    shape = Shape(queries=10**5, heads=8, dimension=32, width=4, terms=64, n=4096, itemsize=4)
    plan = make_plan(shape, 4, 1, sums="C++")
    assert plan.query_block > 1
    assert plan.key_block == 4096
    assert 10**4 < plan.group < 10**5
    groups = -(-(10**5) // plan.group)
    assert groups * plan.group - 10**5 < groups * plan.query_block  # little is padding


def test_cuda_sums_get_many_draws_of_keys_at_once(make):
    """As many as fit the memory; replicates of eight draws at once are those of one at a time."""
    shape = Shape(queries=64, heads=8, dimension=32, width=4, terms=64, n=2**20, itemsize=4)
    plan = make_plan(shape, 64, 1, platform="gpu", sums="CUDA")
    assert plan.bytes_per_device <= 2**30
    assert (plan.at_once, plan.key_block % DRAW_BLOCK) == (32, 0)
    assert plan.key_block > DRAW_BLOCK
    task, heads, queries = make(heads=2, count=3)
    shared = Shared(task, heads, jnp.asarray(queries))
    of = partial(Settings, 5 * DRAW_BLOCK + 7, query_block=1, dtype="float64")
    one, two = (
        jax.jit(partial(replicate, of(key_block=k)))(jax.random.key(0), shared)
        for k in (DRAW_BLOCK, 5 * DRAW_BLOCK)
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), one, two)


def memory(program, task, heads, queries, replicates):
    """The compiler's own count of bytes, temporaries and outputs, of one batch."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("batch",))
    keys = Draw.from_seed(0, (), replicates).keys(np.arange(1, dtype=np.uint32))
    shared = Shared(task, heads, queries)
    compiled = run_batches.lower(program, shared, None, keys, mesh=mesh).compile()
    analysis = compiled.memory_analysis()
    return analysis.temp_size_in_bytes + analysis.output_size_in_bytes


def test_compiled_program_obeys_the_plan(make):
    """The compiler's own count of temporaries, for a million keys."""
    task, heads, queries = make(heads=2, count=3)
    shape = Shape(queries=3, heads=2, dimension=4, width=2, terms=6, n=10**6, itemsize=4)
    plan = make_plan(shape, 2, 1, budget=2**24)
    settings = Settings(10**6, plan.key_block, plan.query_block, "float32")
    program = Program(partial(replicate, settings), BATCH_ESTIMATES, False, plan.at_once)
    assert memory(program, task, heads, queries, 2) <= plan.bytes_per_device <= 2**24


@pytest.mark.parametrize("kernel", sorted(RULES))
def test_weight_rules_obey_the_plan(make, kernel):
    """All keys of a replicate at once, one replicate at a time and several."""
    task, heads, queries = make(kernel, heads=16, dimension=2, width=1, count=3)
    sizes = {"queries": 3, "heads": 16, "dimension": 2, "width": 1, "terms": 6, "itemsize": 8}
    for n, budget, at_once in ((300, 2**30, 3), (30_000, 2**26, 1)):
        shape = Shape(n=n, all_keys=True, **sizes)
        plan = make_plan(shape, 4, 1, budget=budget)
        assert (plan.key_block, plan.query_block) == (n, at_once)  # few keys: 3 of either
        settings = Settings(n, plan.key_block, plan.query_block, "float64")
        program = Program(partial(weigh_all_keys, settings), BATCH_ESTIMATES, False, plan.at_once)
        assert (plan.at_once > 1) == (at_once > 1)
        assert memory(program, task, heads, queries, 4) <= plan.bytes_per_device <= budget
    with refused("memory_budget"):
        make_plan(shape, 4, 1, budget=2**20)
    # What a rule may keep alive at a query counts for every head.
    sizes = (3, plan.key_block, plan.query_block, 1)
    more = working_set(shape._replace(heads=17), *sizes)
    assert more - working_set(shape, *sizes) >= RULE_ARRAYS * shape.n * shape.itemsize


@pytest.mark.parametrize("keep", [True, False])
def test_queries_that_fill_up_the_last_round_do_not_count(keep):
    """Five queries in rounds of three: the sixth is there for its shape alone."""
    values = np.arange(12.0).reshape(2, 6) ** 2
    found = join_groups([{"bias": values[:, :3]}, {"bias": values[:, 3:]}], 5, keep)["bias"]
    expected = values[:, :5] if keep else values[:, :5].mean(1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
