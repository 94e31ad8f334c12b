"""Which heads are compared."""

FITTED = ("squares", "mean", "interval", "spread", "fault")
"""What is kept of the fits of exponents (:class:`sims.judgement.exponents.Exponents`)."""
POOLS = ("one head", "averaged heads", "ever more heads")
