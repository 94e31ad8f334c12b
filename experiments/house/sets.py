"""The six sets of heads of a problem, by their places, and the indices of each."""

HAAR, ORTHOGONAL = 3, 5
"""Places of the first Haar set and of the orthogonal one; the place between is Haar, too."""
INDICES = ("mean", "top", "entropy", "participation")
"""Of the subspaces: the head diversity index, and other spectral summaries."""
