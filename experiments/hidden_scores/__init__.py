"""Hidden scores: collapse, uniformity and temperature of stacks, and heads of a second layer"""
