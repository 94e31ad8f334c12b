"""Judgement: answers over a law of problems, from effects and their Monte Carlo errors."""
