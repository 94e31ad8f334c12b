"""Effects made of numbers, and what a test of the judgement says of them."""

import numpy as np

from sims.effects import Effect, of_batches
from sims.judgement import Rule, decide


def effects(values, errors=0.01, batches=64, **fields):
    """One effect a value; every field may be one for all, or one each."""
    each = {"value": values, "error": errors, "batches": batches, **fields}
    rows = zip(*(np.broadcast_to(v, np.shape(values)).tolist() for v in each.values()), strict=True)
    return [Effect(f"e{i}", **dict(zip(each, row, strict=True))) for i, row in enumerate(rows)]


def judged(test, found, margin=0.1, level=0.95, expected=None):
    return decide(found, Rule(test, margin, level, 512, expected))


def curve(x, values):
    """Effects whose batches (B, k) share draws."""
    return [of_batches("", v, x=float(at)) for at, v in zip(x, values.T, strict=True)]
