"""Laws of what depth, heads and normalisation do to a set of tokens; see docs/theory/depth.md."""
