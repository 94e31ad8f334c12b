"""Theory of attention whose keys are fewer, or of lower rank, than the sequence has."""
