"""Weight rules: how the scores of all keys become the weights of an estimate."""

from sims.weights.rules import RULES, WeightRule, check_rule

__all__ = ["RULES", "WeightRule", "check_rule"]
