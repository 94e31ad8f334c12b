"""The experiments, one folder and one question each."""
