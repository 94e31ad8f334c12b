"""Adaptive radii: every term by both roads, and what a fixed radius would miss."""
