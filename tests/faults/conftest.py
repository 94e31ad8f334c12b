"""Shared by the tests of faults."""

from tests.cli.conftest import folder  # noqa: F401
