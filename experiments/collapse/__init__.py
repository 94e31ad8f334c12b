"""Effects of depth, norms and the residual stream on tokens; recovery of heads from outputs."""
