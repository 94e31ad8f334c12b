"""Monte Carlo simulation and theory validation of multi-head attention as a kernel ensemble.

A *problem* (:mod:`sims.problem`) goes down two independent roads, *theory* (:mod:`sims.theory`)
and *simulation* (:mod:`sims.simulation`). Both end in the same labelled *terms*
(:mod:`sims.terms`); *claims* compare them and return a verdict (:mod:`sims.judgement`).
"""

__version__ = "0.1.0"
