"""Hierarchical scores: what coarser copies of the tokens cost, add and do not add."""
