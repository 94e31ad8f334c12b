"""Layers of attention and their caches, as pure functions of arrays.

They belong to the simulated road: theory never imports them, nor does what an experiment predicts.
"""
