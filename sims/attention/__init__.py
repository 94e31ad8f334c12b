"""Layers of attention and their caches, as pure functions of arrays.

Only simulation uses them: theory never imports them, nor do the predictions of an experiment.
"""
