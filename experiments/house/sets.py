"""The sets of heads of a problem and their two temperatures, by place."""

LADDER = (0.05, 0.25, 0.5, 0.75, 1.0)
"""Mean index of the first sets over that of the Haar set, which is the last of the ladder."""
ALIGNED, HAAR, SECOND, ORTHOGONAL = 0, 4, 5, 6
"""Places of sets: the ends of the ladder, a second Haar set, and the orthogonal one."""
SETS = 7
COMMON, OWN_BEST = 0, 1
"""Places of temperatures."""
BY_QUERY = ("query_attended", "query_exact", "query_first")
"""Effective keys, and errors of the average by exact theory and to first order, at a query."""
