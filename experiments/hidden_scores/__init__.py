"""Hidden scores: collapse, uniformity and temperature of stacks."""
