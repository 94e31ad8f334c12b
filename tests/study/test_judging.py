"""From effects to verdicts: the file's test, its selection of effects, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from sims.effects import Effect, of_batches
from sims.errors import InputError
from sims.estimates import covariance_of_means, mean_and_error
from sims.judgement import (
    Evidence,
    Finding,
    bound,
    equivalence,
    identity,
    near_optimal,
    ordering,
    rate,
)
from sims.judgement.tests import TESTS, Rule, decide
from sims.study import judging
from sims.study.judging import chosen
from sims.study.schema import ClaimSpec

RNG = np.random.default_rng(3)
VALUES = RNG.normal([0.1, 0.4, 0.9], 0.2, (32, 3))
FAMILY = [of_batches(f"e{i}", v, f"p{i}", at={"n_eff": 10.0 * i}) for i, v in enumerate(VALUES.T)]
MEAN, ERROR = np.array([mean_and_error(v) for v in VALUES.T]).T


@pytest.mark.parametrize("test", [equivalence, bound, ordering])
@pytest.mark.parametrize("sequential", [False, True])
def test_the_named_test_is_applied_to_the_effects(test, sequential):
    finding = decide(FAMILY, Rule(test.__name__, 0.5, 0.95, sequential=sequential, replicates=7))
    points = [("p0",), ("p1",), ("p2",)]
    evidence = Evidence(MEAN, ERROR, np.full(3, 32.0), 7, points, fixed=not sequential)
    assert finding == test(evidence, margin=0.5, level=0.95)


def test_every_test_of_the_schema_exists():
    assert set(TESTS) == set(ClaimSpec.model_fields["test"].annotation.__args__)


def test_bounds_and_batches_fixed_beforehand_are_the_effects_own():
    effects = [Effect("a", 0.4, 0.01, 16, bound=0.2), Effect("b", 0.1, 0.01, 16, fixed=True)]
    finding = decide(effects, Rule("equivalence", 0.5, 0.95, sequential=True))
    evidence = Evidence([0.4, 0.1], [0.01, 0.01], [16, 16], 0, ((), ()), [False, True], [0.2, 0.0])
    assert finding == equivalence(evidence, margin=0.5, level=0.95)
    assert finding.verdict == "inconclusive"


def test_identities_divide_by_their_condition():
    gaps = [Effect("a", values=np.array([[1.0, 8.0]]), condition=4.0), Effect("b", 1.5)]
    assert decide(gaps, Rule("identity", 2.0, 0.95)) == identity([0.25, 2.0, 1.5], margin=2.0)
    assert decide([], Rule("identity", 2.0, 0.95)).verdict == "inconclusive"


def test_rates_take_the_covariance_of_common_draws():
    x = np.array([1.0, 2.0, 4.0])
    values = np.exp(RNG.normal(0, 0.05, (32, 1)) + RNG.normal(0, 0.01, (32, 3))) / x
    effects = [of_batches("", v, "p", x=float(a)) for v, a in zip(values.T, x, strict=True)]
    rule = Rule("rate", 0.1, 0.95, expected=-1.0)
    mean, error = np.array([mean_and_error(v) for v in values.T]).T
    evidence = Evidence(mean, error, 32.0, 0, ("p",) * 3, fixed=True)
    covariance = covariance_of_means(values)
    assert decide(effects, rule) == rate(
        evidence, x, expected=-1.0, margin=0.1, level=0.95, covariance=covariance
    )
    negative = [e.scaled(-1.0) for e in effects]
    assert decide(negative, Rule("remainder", 0.1, 0.95, expected=-1.0)) == decide(effects, rule)


def test_rates_of_what_is_not_sampled():
    effects = [Effect("", 3.0 / x, x=x) for x in (1.0, 2.0, 4.0)]
    finding = decide(effects, Rule("rate", 0.1, 0.95, expected=-1.0))
    assert (finding.verdict, finding.effect) == ("supported", pytest.approx(-1.0))
    slow = [Effect("", -((e.x or 1.0) ** -0.5), x=e.x) for e in effects]
    assert decide(slow, Rule("remainder", 0.1, 0.95, expected=-1.0)).verdict == "refuted"
    for test in ("rate", "remainder"):
        assert decide([], Rule(test, 0.1, 0.95, expected=-1.0)).verdict == "inconclusive"


def test_choices_carry_their_candidates():
    values = RNG.normal([1.0, 1.5], 0.1, (16, 2))
    rule = Rule("near_optimal", 0.05, 0.95, replicates=3)
    expected = near_optimal([(values, 0)], margin=0.05, level=0.95, replicates=3)
    assert decide([Effect("case", values=values, best=0)], rule) == expected


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"test": "custom"}, "test"),
        ({"test": "rate"}, "expected"),
        ({"test": "law"}, "law"),
        ({"test": "bound", "law": "log"}, "law"),
    ],
)
def test_incomplete_rules_are_refused(options, field):
    with pytest.raises(InputError, match=field):
        Rule(margin=0.1, level=0.95, **options)


def claim(**where):
    return ClaimSpec(
        id="c", statement="s", test="bound", effects="f", where=where, margin=0.0, formula="f"
    )


def test_where_selects_effects_by_their_facts():
    assert chosen(FAMILY, claim(n_eff={"at_least": 10.0})) == FAMILY[1:]
    assert chosen(FAMILY, claim(n_eff={"at_most": 10.0})) == FAMILY[:2]
    assert chosen(FAMILY, claim(n_eff=10.0)) == FAMILY[1:2]
    with pytest.raises(InputError, match="where: got 'angle'; allowed: n_eff"):
        chosen(FAMILY, claim(angle=1.0))


def test_a_margin_that_the_test_does_not_use_is_refused(tmp_path, monkeypatch):
    """The test of laws has a margin of its own; another one in the file must not be passed over."""
    law = claim().model_copy(update={"test": "law", "law": "log", "margin": 2.0})
    experiment = SimpleNamespace(name="e", folder=tmp_path, claims=[law])
    finding = Finding("supported", 5.0, (4.5, 5.5), 4.0, 0.95, 0, "r", 0.0)
    monkeypatch.setattr(judging, "decide", lambda effects, rule: finding)
    monkeypatch.setattr(judging, "contract", lambda experiment: "hash")
    results = SimpleNamespace(replicates=8, provenance={})
    with pytest.raises(InputError, match=r"margin: got 2\.0; allowed: 4, that of test law"):
        judging.judge(experiment, results, {"f": FAMILY})
    law = law.model_copy(update={"margin": 4.0})
    experiment = SimpleNamespace(name="e", folder=tmp_path, claims=[law])
    assert judging.judge(experiment, results, {"f": FAMILY})[0].margin == 4.0
