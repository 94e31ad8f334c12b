"""Scores on scales: their error by levels and ranks, and blocks of keys."""
