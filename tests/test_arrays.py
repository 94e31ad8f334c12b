"""Numbers that a conversion to float64 would change, wherever arrays are given."""

import jax.numpy as jnp
import numpy as np
import pytest

from sims.base import terms
from sims.problem import DESIGNS, TARGETS, EmpiricalDesign, GaussianDesign, Heads, Task
from sims.simulation import nw_weights
from sims.theory import predict
from tests.by_hand import refused

MASKED = np.ma.masked_array(np.eye(2), [[0, 1], [0, 0]])
KINDS = {
    "masked": MASKED,
    "lists of masked": [MASKED[0], MASKED[1]],
    "complex of JAX": jnp.eye(2) * 1j,
    "Boolean of JAX": jnp.eye(2, dtype=bool),
    "dates": np.eye(2).astype("datetime64[s]"),
    "large integers": np.full((2, 2), 2**53 + 1),
    "longer floats": np.full((2, 2), np.longdouble(1) / 3),
    "NaN": np.full((2, 2), np.nan),
}
TASK = Task(DESIGNS["isotropic"](2), TARGETS["constant"](2), 1.0)
HEADS = Heads(np.eye(2)[None], "gaussian", 1.0)
ENTRIES = {
    "queries": lambda value: predict(TASK, HEADS, 9, value),
    "design.rows": EmpiricalDesign,
    "design.covariance": GaussianDesign,
    "keys": lambda value: nw_weights(HEADS, [0.0, 1.0], value),
    "weights": lambda value: terms.assemble([[0]], *np.zeros((3, 1, 1, 1)), weights=value),
}


@pytest.mark.parametrize("field", ENTRIES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_conversion_would_change_is_refused(field, kind):
    with refused(f"^{field}: "):
        ENTRIES[field](KINDS[kind])


@pytest.mark.parametrize("value", [np.eye(2, dtype="f4"), jnp.eye(2, dtype=jnp.bfloat16)])
def test_shorter_numbers_are_taken(value):
    assert (EmpiricalDesign(value).rows == np.eye(2)).all()
