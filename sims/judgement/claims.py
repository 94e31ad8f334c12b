"""The claims of the main paper, in our words, by the ids that experiments and ledger use.

Source: the abstract of arXiv 2605.20271 and its press summary. Claims that no experiment tests
yet are listed in the report as not covered.
"""

PAPER_CLAIMS = {
    "identity": "Single-head softmax attention is algebraically a Nadaraya–Watson estimator.",
    "ensemble": "Multi-head attention is a structured ensemble of H Nadaraya–Watson estimators, "
    "each in its own projection subspace of the key space.",
    "decomposition": "Its mean squared error has an explicit bias–variance–covariance "
    "decomposition.",
    "not-heads-alone": "Variance reduction depends not on the number of heads alone but on the "
    "decorrelation of head outputs.",
    "angles": "Decorrelation is governed by the principal angles between the subspaces.",
    "extremes": "Orthogonal projections give maximum variance reduction, aligned projections none.",
    "hdi": "The Head Diversity Index is a computable spectral measure of inter-head decorrelation.",
    "hdi-monotone": "Mean squared error decreases monotonically in the Head Diversity Index.",
    "specialization": "This explains why trained heads specialise.",
    "allocation": "Under a budget D = H·d_k there is an error-minimising pair (H*, d_k*), set by "
    "the data distribution and the smoothness.",
    "dk-log": "d_k* grows logarithmically with the training-set size n.",
    "heads-linear": "H* grows nearly linearly with the budget D.",
    "adding-heads": "Adding heads without diversity is inefficient.",
    "unification": "The same principle covers attention, general weighting of ensembles, and "
    "decorrelation in biological and computational ensembles (ants, random forests).",
}
"""Claim id to a one-line statement."""
