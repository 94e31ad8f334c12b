"""First-order theory: ``closed_forms`` of every term, ``laws`` of angles, redundant ``views``.

All of it is to first order in 1/n; each docstring says where that is valid. The public names are
those of :mod:`sims.theory`.
"""
