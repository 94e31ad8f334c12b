"""Shared by all tests: JAX is set up before any test module makes an array."""

import os

# Compilation is most of the suite's time, and no test asks for speed. Set it to 0 to test code as
# optimised as in a run.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import sims.problem  # noqa: F401
