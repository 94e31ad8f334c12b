"""Layers of attention, their caches and their pruning, as pure functions of arrays.

They belong to the simulated road: theory never imports them, nor does what an experiment predicts.
"""
