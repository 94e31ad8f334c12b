"""Studies: experiment files, their grids, results, effects, verdicts, and the runner of all steps.

``run("angles", fidelity="smoke")`` is the whole of one experiment from Python: the same plain call
that the command line and the pipeline make.
"""
