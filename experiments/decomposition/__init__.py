"""Every term of the decomposition, by both roads"""
