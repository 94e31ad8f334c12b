"""Shared by all tests: JAX is set up before any test module makes an array."""

import sims.problem  # noqa: F401
