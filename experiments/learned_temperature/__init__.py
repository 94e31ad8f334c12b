"""Temperatures learned at one context length: which rule keeps its error at longer ones?"""
