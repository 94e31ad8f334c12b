"""Step ``search``: counterexamples among problems that were not drawn."""

from sims.study.searching import search

__all__ = ["search"]
