"""Cost of merging neighbouring keys of a sequence."""
