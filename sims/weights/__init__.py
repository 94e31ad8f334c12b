"""Weight rules: functions from the scores of all keys to the weights of an estimate."""

from sims.weights.rules import RULES, SCORES, WeightRule, Weights, check_rule
from sims.weights.sparse import FACTORIES

__all__ = ["FACTORIES", "RULES", "SCORES", "WeightRule", "Weights", "check_rule"]
