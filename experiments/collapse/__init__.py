"""What depth, norms and the residual stream leave of tokens, and a layer's output of its heads."""
