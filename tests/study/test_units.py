"""A unit with a sampler of its own: its replicates and its stream are what the driver is given."""

import jax
import numpy as np
import pytest
import xarray as xr

from sims.montecarlo import Replicates, run
from sims.study.schema import SimulationSpec
from sims.study.units import SampledUnit

SAMPLER = Replicates(lambda key, shared, batch: {"x": jax.random.normal(key)})
SETTINGS = SimulationSpec(seed=3, replicates_per_batch=2, batches=4)


@pytest.mark.parametrize(("replicates", "stream"), [(None, ()), (5, ()), (None, (1,)), (3, (2, 1))])
def test_draws_are_the_units_own(replicates, stream):
    unit = SampledUnit(SAMPLER, {}, replicates, stream)
    data = unit.estimate(SETTINGS)
    own = run(SAMPLER, 3, replicates_per_batch=replicates or 2, batches=4, stream=stream)
    xr.testing.assert_identical(data, own)
    plain = run(SAMPLER, 3, replicates_per_batch=2, batches=4)
    assert np.array_equal(data["x"], plain["x"]) == ((replicates, stream) == (None, ()))
