"""What a finding counts: the fewest replicates behind it, and every effect that was looked at."""

import numpy as np
import pytest
from scipy.stats import t

from sims.effects import Effect
from sims.judgement import Evidence, bound, equivalence, ordering
from sims.judgement.tests import Rule, decide


@pytest.mark.parametrize(
    ("behind", "fewest"), [((40, 9, 25), 9), ((40, None, 25), 12), ((None, None), 12)]
)
def test_a_finding_rests_on_the_fewest_replicates_of_any_effect(behind, fewest):
    """An effect that does not say has the 12 of its experiment."""
    effects = [Effect(f"e{i}", 0.1, 0.01, 64, replicates=count) for i, count in enumerate(behind)]
    rule = Rule("equivalence", 0.5, 0.95, replicates=12)
    assert decide(effects, rule).replicates == fewest


def test_a_finding_without_effects_rests_on_those_of_the_experiment():
    assert decide([], Rule("equivalence", 0.5, 0.95, replicates=12)).replicates == 12


@pytest.mark.parametrize("decided", [equivalence, bound, ordering])
@pytest.mark.parametrize("others", [0, 1, 6])
def test_a_refutation_pays_for_every_effect_that_was_looked_at(decided, others):
    """Bonferroni: one effect 4.5 errors outside has k times its own two-sided p-value."""
    inside, outside = (0.9, 0.5 - 0.45) if decided is ordering else (0.0, 0.5 + 0.45)
    effects = np.append(np.full(others, inside), outside)
    evidence = Evidence(effects, 0.1, 100, 7, fixed=True)
    found = decided(evidence, margin=0.5, level=0.95)
    assert found.verdict == "refuted"
    assert found.p_value == pytest.approx((others + 1) * 2 * t.sf(4.5, 99), rel=1e-6)
