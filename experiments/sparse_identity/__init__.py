"""Sparse attention is compact kernel regression, under conditions."""
