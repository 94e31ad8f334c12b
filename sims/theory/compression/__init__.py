"""What compression does to attention: low-rank scores, pruned weights, merged keys."""
