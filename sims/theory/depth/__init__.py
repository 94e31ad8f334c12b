"""Laws of depth: what layers after layers do to tokens, to heads, to scores and to scales."""
