"""Judgement: from effects and their Monte Carlo errors to answers over a law of problems."""
