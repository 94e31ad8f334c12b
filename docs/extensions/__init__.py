"""Sphinx extensions of this site alone."""
