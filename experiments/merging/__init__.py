"""What merging neighbouring keys of a sequence costs heads."""
