"""Hidden scores: what a running mean of scores over layers does, and what it does not."""
