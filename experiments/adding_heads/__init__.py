"""Adding heads, with and without diversity"""
