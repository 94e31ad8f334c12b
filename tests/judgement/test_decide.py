"""Verdicts are three-valued, simultaneous, and never won by missing data."""

import math

import numpy as np
import pytest
from scipy.stats import linregress

from sims.errors import InputError
from sims.files import write_json
from sims.judgement import (
    Evidence,
    Finding,
    Verdict,
    bound,
    equivalence,
    identity,
    ordering,
    rate,
    read_ledger,
    remainder,
    write_verdicts,
)
from sims.judgement.intervals import sequence_half_width
from sims.study.schema import ClaimSpec

RUN = {"level": 0.95, "batches": 16, "replicates": 512, "fewest": 2}


def judged(decide, effects, errors, *given, margin, level, **evidence):
    return decide(Evidence(effects, errors, **evidence), *given, margin=margin, level=level)


def fitted(x, y, errors, *, expected=-1.0, margin, level, **evidence):
    return rate(Evidence(y, errors, **evidence), x, expected=expected, margin=margin, level=level)


@pytest.mark.parametrize(
    ("decide", "effects", "verdict"),
    [
        (equivalence, [0.01, -0.02], "supported"),
        (equivalence, [0.01, -0.30], "refuted"),
        (equivalence, [0.01, 0.095], "inconclusive"),
        (bound, [-5.0, 0.05], "supported"),
        (bound, [-5.0, 0.15], "refuted"),
        (bound, [-5.0, 0.10], "inconclusive"),
        (ordering, [0.3, 0.2], "supported"),
        (ordering, [0.2, -0.3], "refuted"),
        (ordering, [0.2, 0.11], "inconclusive"),
    ],
)
def test_three_verdicts(decide, effects, verdict):
    finding = judged(decide, effects, 0.01, margin=0.1, **RUN)
    assert finding.verdict == verdict
    assert finding.interval[0] < finding.effect < finding.interval[1]
    assert finding.effect == effects[1]  # the one that decided
    assert ("would decide" in finding.reason) <= (verdict == "inconclusive")


@pytest.mark.parametrize("decide", [equivalence, bound, ordering])
@pytest.mark.parametrize("effect", [-0.08, -0.01, 0.01, 0.08, 0.2])
def test_a_bound_widens_the_interval_and_leaves_the_effect(decide, effect):
    alone, bounded = (
        judged(decide, [effect], 0.01, margin=0.1, bounds=bounds, **RUN) for bounds in (0.0, 0.03)
    )
    assert bounded.effect == alone.effect == effect
    wider = np.subtract(bounded.interval, alone.interval)
    np.testing.assert_allclose(wider, [-0.03, 0.03], atol=1e-12)


@pytest.mark.parametrize("decide", [equivalence, bound, ordering])
@pytest.mark.parametrize(
    ("effects", "errors"),
    [
        ([], []),
        ([0.0, math.nan], [0.1, 0.1]),
        ([0.5], [math.nan]),
        ([0.5], [-1.0]),
        ([math.inf], [1]),
    ],
)
def test_missing_data_support_nothing(decide, effects, errors):
    finding = judged(decide, effects, errors, margin=1.0, **RUN)
    assert finding.verdict == "inconclusive"
    assert "missing" in finding.reason
    assert finding.interval is None


def test_one_batch_supports_nothing():
    found = equivalence(Evidence([0.0], 0.1, batches=1, replicates=8), margin=9, level=0.95)
    assert found.verdict == "inconclusive"


@pytest.mark.parametrize(
    ("effects", "error", "outcome"),
    [
        ([0.05], 0.05, "supported"),
        ([0.0, 0.02, 0.07], 0.05, "supported"),  # the neediest point decides
        ([0.13, 0.0, 0.2], 0.15, "refuted"),  # the clearest one outside does, at its share
    ],
)
def test_replicates_that_would_decide_are_enough(effects, error, outcome):
    errors = np.full(len(effects), error)
    kept = judged(equivalence, effects, errors, margin=0.1, **RUN)
    needed = int(kept.reason.split("about ")[1].split(" ")[0].replace(",", ""))
    assert kept.verdict == "inconclusive"
    for share, verdict in ((1.0, outcome), (0.9, "inconclusive")):
        batches = 16 * share * needed / 512
        run = {"level": 0.95, "batches": batches, "replicates": 1, "fewest": 2}
        found = judged(equivalence, effects, errors * math.sqrt(16 / batches), margin=0.1, **run)
        assert found.verdict == verdict


def test_interval_shown_is_the_one_that_decided():
    """Of the worst point alone if all must be inside; of all points at once otherwise."""
    for effects, verdict, share in (
        ([0.0, 0.02, -0.05], "supported", 1),
        ([0.0, 0.02, -0.09], "inconclusive", 3),
        ([0.0, 0.15, -0.4], "refuted", 3),
    ):
        found = judged(equivalence, effects, [0.01] * 3, margin=0.1, **RUN)
        half = float(sequence_half_width(0.01, 16, 0.05 / share))
        assert found.verdict == verdict
        assert found.interval == pytest.approx((effects[2] - half, effects[2] + half))


def test_effect_at_the_margin_says_so():
    assert "no affordable" in judged(equivalence, [0.1], [0.01], margin=0.1, **RUN).reason


def test_deterministic_effects():
    run = {**RUN, "batches": np.inf}
    assert judged(equivalence, [0.0, 0.05], [0, 0], margin=0.05, **run).verdict == "supported"
    level = judged(ordering, [0.0], [0.0], margin=0, points=["a"], **run)  # not a rise
    assert (level.verdict, level.needs) == ("inconclusive", {})
    assert "no affordable" in level.reason
    x = np.array([1.0, 2.0, 4.0])
    for scatter in (0.0, 1e-3):
        y = 3 / x * (1 + scatter * np.array([1, -2, 1]))
        assert fitted(x, y, 0 * x, margin=0.1, **run).verdict == "supported"
    with pytest.raises(InputError, match="not sampled"):
        judged(equivalence, [0.0], [0.1], margin=0.05, **run)


@pytest.mark.parametrize("rounding", [0.0, 1e-17])
def test_values_that_do_not_vary_support_nothing(rounding):
    """Reused draws look like certainty. What they may do is refute."""
    for fixed in (False, True):
        run = {**RUN, "margin": 0.1, "fixed": fixed}
        for decide, inside, outside in (
            (equivalence, 0.01, 0.2),
            (bound, -3, 0.2),
            (ordering, 3, -1),
        ):
            for effects in ([inside], [inside, inside]):
                found = judged(decide, effects, [rounding, 0.001][: len(effects)], **run)
                assert (found.verdict, found.needs) == ("inconclusive", {})
                assert "do not vary" in found.reason
                assert found.p_value == pytest.approx(1.0)
            assert judged(decide, [inside, outside], rounding, **run).verdict == "refuted"
    x = np.array([1.0, 2.0, 4.0])
    found = fitted(x, 3 / x, 0 * x, margin=0.1, **RUN)
    assert found.verdict == "inconclusive"


def test_fixed_may_differ_between_points():
    """A t interval where the number of values was fixed, a sequence elsewhere."""
    run = {"margin": 1.0, "level": 0.95, "replicates": 1, "fewest": 2}
    mixed = judged(
        equivalence, [0.5, 0.0], [0.1, 0.1], batches=[20, 20], fixed=[True, False], **run
    )
    alone = judged(equivalence, [0.5], [0.1], batches=20, fixed=True, **run)
    assert mixed.interval == pytest.approx(alone.interval)


def test_intervals_cover_simultaneously():
    """All 20 intervals of a claim cover their effects at once, at least at the level."""
    rng = np.random.default_rng(0)
    trials, points, batches = 2000, 20, 8
    draws = rng.normal(size=(trials, points, batches))
    means, errors = draws.mean(-1), draws.std(-1, ddof=1) / math.sqrt(batches)
    missed = sum(
        equivalence(Evidence(m, e, batches, fewest=2), margin=1e-9, level=0.9).verdict == "refuted"
        for m, e in zip(means, errors, strict=True)
    )
    assert missed / trials < 0.1 + 3 * math.sqrt(0.1 * 0.9 / trials)


def _batches(means, root, count=16):
    """Symmetric batches whose means are these, with covariance root·rootᵀ."""
    half = np.random.default_rng(0).normal(size=(count // 2, len(means)))
    unit = np.concatenate([half, -half])
    unit = unit @ np.linalg.inv(np.linalg.cholesky(np.cov(unit, rowvar=False))).T
    return means + np.sqrt(count) * unit @ np.asarray(root).T


def test_rate():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    run = {"margin": 0.1, **RUN}
    supported = fitted(x, 3 / x, 0.01 / x, **run)
    assert supported.verdict == "supported"
    assert fitted(x, 3 / x**2, 0.01 / x, **run).verdict == "refuted"
    assert fitted(x, 3 / x, 1 / x, **run).verdict == "inconclusive"
    evidence = Evidence(3 / x, 0.01 / x, 16, 512, fewest=2)
    claimed = {"expected": -1, "level": 0.95}
    same = rate(evidence, x, **claimed, margin=0.1, values=_batches(3 / x, np.diag(0.01 / x)))
    assert same.interval == pytest.approx(supported.interval)
    few = fitted(x, 3 / x, 0.01 / x, **run | {"batches": [64, 8, 64, 64]})
    assert few.interval == fitted(x, 3 / x, 0.01 / x, **run | {"batches": 8}).interval
    for y in (-3 / x, np.where(x > 4, np.nan, x)):
        assert fitted(x, y, 0.01 / x, **run).verdict == "inconclusive"
    with pytest.raises(InputError, match="bounds"):
        fitted(x, 3 / x, 0.01 / x, bounds=0.1, **run)
    with pytest.raises(InputError, match="rate"):
        rate(evidence, x[1:], **claimed, margin=0.1)


def test_a_slope_is_as_skewed_as_the_points_that_pull_at_it():
    """Third cumulants of independent terms add up: Σ (c_j e_j)³ κ_j over the variance to 3/2."""
    x, y = np.array([1.0, 2.0, 4.0, 8.0]), np.array([8.0, 4.0, 2.0, 1.0])
    errors, kappa = 0.02 * y, np.array([0.1, 0.3, 0.0, -0.1])
    evidence = Evidence(y, errors, 64, 7, skewness=kappa)
    found = rate(evidence, x, expected=-1.0, margin=0.1, level=0.95)
    # Equal relative errors: least squares of log y, without weights.
    pull = (np.log(x) - np.log(x).mean()) / np.sum((np.log(x) - np.log(x).mean()) ** 2)
    spread = 0.02 * np.sqrt(np.sum(pull**2))
    third = np.sum((0.02 * pull) ** 3 * kappa) / spread**3
    by_hand = equivalence(
        Evidence(np.array([0.0]), spread, 64, 7, skewness=third), margin=0.1, level=0.95
    )
    assert abs(third) > 0.05
    assert found.interval == pytest.approx([end - 1 for end in by_hand.interval], rel=1e-6)


def test_rate_interval_covers_with_common_draws():
    """Points that share draws: the covariance of the batches gives the right interval."""
    rng, x = np.random.default_rng(1), np.array([1.0, 2.0, 4.0, 8.0])
    hits, trials = 0, 400
    for _ in range(trials):
        shared = rng.normal(size=(32, 1))
        y = (3 / x) * (1 + 0.05 * (shared * np.log(x) + 0.2 * rng.normal(size=(32, 4))))
        finding = rate(
            Evidence(y.mean(0), np.nan, 32, fewest=2), x, expected=-1, margin=1e-9, level=0.9,
            values=y,
        )  # fmt: skip
        hits += finding.interval[0] <= -1 <= finding.interval[1]
    assert hits / trials > 0.9 - 3 * math.sqrt(0.09 / trials)


def test_remainder_of_either_sign():
    """A gap below zero shrinks like one above; one that changes sign has no order."""
    n = np.array([8.0, 16.0, 32.0, 64.0])
    claimed = {"margin": 0.1, "level": 0.95}
    for sign in (1, -1):
        evidence = Evidence(sign * 3 / n, 0.01 / n, 64, 512)
        right, wrong = (remainder(evidence, n, order=order, **claimed) for order in (1.0, 2.0))
        assert (right.verdict, wrong.verdict) == ("supported", "refuted")
        assert right.effect == pytest.approx(-1.0)
    turning = Evidence(np.array([3.0, 1.0, -0.5, -0.2]), 0.01 / n, 16, 512)
    assert remainder(turning, n, **claimed).verdict == "inconclusive"


def test_rate_where_points_scatter_about_the_law():
    """Where misfit exceeds the errors, the slope's error is that of ordinary regression."""
    x = np.geomspace(1, 64, 7)
    y = np.exp(0.1 * np.random.default_rng(3).normal(size=7)) / x
    options = {"margin": 1.0, "level": 0.95, "batches": 64}
    off, near = (fitted(x, y, share * y, **options) for share in (0.005, 10.0))
    line = linregress(np.log(x), np.log(y))
    half = float(sequence_half_width(line.stderr, 64, 0.05))
    assert off.effect == pytest.approx(line.slope)
    assert off.interval == pytest.approx((line.slope - half, line.slope + half))
    # Where the errors explain the scatter, they alone count: σ/√Sxx.
    half = float(sequence_half_width(10 / math.sqrt(7 * np.log(x).var()), 64, 0.05))
    assert near.interval == pytest.approx((line.slope - half, line.slope + half))


def test_slope_error_uses_the_whole_covariance():
    """Against the spread of slopes that NumPy fits to draws of strongly correlated points."""
    x, rng = np.array([1.0, 2.0, 4.0, 8.0]), np.random.default_rng(5)
    tilt = 0.01 * np.log(x)[:, None] / x[:, None]  # a draw shared by all points tilts the line
    covariance = tilt @ tilt.T + np.diag((0.002 / x) ** 2)
    sd = np.sqrt(np.diag(covariance))
    draws = rng.multivariate_normal(3 / x, covariance, size=20_000)
    slopes = [np.polyfit(np.log(x), np.log(y), 1, w=3 / x / sd)[0] for y in draws]
    batches = _batches(3 / x, np.linalg.cholesky(covariance))
    low, high = rate(
        Evidence(3 / x, sd, 16), x, expected=-1.0, margin=0.1, level=0.95, values=batches
    ).interval
    error = (high - low) / 2 / float(sequence_half_width(1.0, 16, 0.05))
    # The standard deviation of 20,000 slopes is off by 0.5 %: 5 of those, false alarms 1e-6.
    assert error == pytest.approx(np.std(slopes), rel=0.025)


def test_identity():
    assert identity([[1e-16, -2e-15]], margin=1e-14).verdict == "supported"
    assert identity([1e-16, -1e-3], margin=1e-14).verdict == "refuted"
    assert identity([1e-16, math.nan], margin=1e-14).verdict == "inconclusive"
    assert identity([], margin=1).verdict == "inconclusive"
    ill, well = ({"gaps": [8e-15, 8e-16], "condition": c, "margin": 1e-15} for c in ([10, 1], 1.0))
    assert (identity(**ill).verdict, identity(**well).verdict) == ("supported", "refuted")
    assert identity(**ill).effect == pytest.approx(8e-16)


def _verdict(**changes):
    fields = {
        "claim": "angles", "experiment": "e", "regime": "all", "statement": "s",
        "verdict": "supported", "effect": 0.1, "interval": (0.0, 0.2), "margin": 0.3, "level": 0.9,
        "replicates": 5, "reason": "r",
    }  # fmt: skip
    return Verdict(**{**fields, **changes})


def test_ledger_round_trip(tmp_path):
    rows = [_verdict(), _verdict(verdict="inconclusive", effect=None, interval=None)]
    write_verdicts(rows, tmp_path / "ledger.json", "ledger.json of smoke")
    assert read_ledger(tmp_path / "ledger.json", "ledger.json of smoke") == rows
    # A ledger of before there was a second paper.
    old = {k: v for k, v in vars(rows[0]).items() if k not in ("paper", "contract", "edited")}
    write_json([old], tmp_path / "ledger.json", "ledger.json of smoke")
    assert read_ledger(tmp_path / "ledger.json") == rows[:1]
    write_json([{"claim": 1}], tmp_path / "ledger.json", "ledger.json of smoke")
    with pytest.raises(InputError):
        read_ledger(tmp_path / "ledger.json")


@pytest.mark.parametrize(
    "changes", [{"verdict": "true"}, {"effect": None}, {"effect": math.nan}, {"interval": None}]
)
def test_no_verdict_without_numbers(changes):
    with pytest.raises(InputError):
        _verdict(**changes)


def test_finding_binds_to_claim():
    claim = ClaimSpec(
        id="angles", statement="s", test="bound", effects="e", margin=0.1, formula="none",
        paper="2601.22766", kind="simulation", over=["queries", "seeds"],
    )  # fmt: skip
    verdict = Verdict.of(claim, "e", Finding("refuted", 1.0, (0.9, 1.1), 0.1, 0.95, 8, "r"))
    assert (verdict.effect, verdict.claim, verdict.paper) == (1.0, "angles", "2601.22766")
    assert (verdict.kind, verdict.over) == ("simulation", ["queries", "seeds"])
    assert verdict.worth == "simulation over queries, seeds"


def test_a_bound_that_narrows_asks_for_more_batches():
    """Where the bound alone leaves a claim open; one that does not narrow asks for nothing."""

    def needs(**evidence):
        found = bound(
            Evidence([0.0, 0.0], [1e-4, 1e-4], [64, 96], 0, ("a", "b"), **evidence),
            margin=0.1, level=0.95,
        )  # fmt: skip
        assert found.verdict == "inconclusive"
        return found.needs

    assert needs(bounds=[0.2, 0.05]) == {}
    assert needs(bounds=[0.2, 0.05], narrowing=True) == {"a": 128}
    assert needs(bounds=[0.2, 0.3], narrowing=[False, True]) == {"b": 192}
