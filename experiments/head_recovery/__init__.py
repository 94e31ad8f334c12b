"""What the mixed output of a layer leaves open of its heads."""
