"""Attention is kernel regression, to rounding"""
