"""KQ-SVD: is the best compression of scores the best of attention?"""
