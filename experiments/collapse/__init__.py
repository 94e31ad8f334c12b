"""What norms, depth and the residual stream do to the rank of a set of tokens."""
