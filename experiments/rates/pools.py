"""Which heads are compared."""

POOLS = ("one head", "averaged heads", "ever more heads")
