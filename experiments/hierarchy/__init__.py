"""Scores on scales: their error by levels and ranks, blocks of keys, and mixtures of scales"""
