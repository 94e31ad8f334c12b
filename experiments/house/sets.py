"""The sets of heads of a problem, its readings and their temperatures, by place."""

LADDER = (0.05, 0.25, 0.5, 0.75, 1.0)
"""Mean index of the first sets over that of the last of the ladder, which is a Haar set."""
ALIGNED, HAAR, THIRD, ORTHOGONAL, HALF_ALIGNED, HALF_HAAR = 0, 4, 5, 6, 7, 8
"""Places of sets: the ends of the ladder, a further Haar set, the orthogonal one, and of both ends
the first half of their heads, each twice, whose average is that of the half."""
SETS = 9
DRAWN, EQUAL = 0, 1
"""Places of readings: heads as drawn, and heads that are equally good alone."""
READINGS = ("as drawn", "equally good")
COMMON, OWN_BEST = 0, 1
"""Places of temperatures. The first one is common to all sets: the best one of the Haar set. The
second one is each set's best as drawn, and the aligned set's best for equally good sets. The halves
have their own best ones as the second. Each is tuned in its reading."""
TEMPERATURES = (("one temperature", "own best"), ("random's best", "aligned's best"))
"""Names of the temperatures of each reading."""
BY_QUERY = ("query_attended", "query_exact", "query_first")
"""Effective keys, and errors of the average by exact theory and to first order, at a query."""
