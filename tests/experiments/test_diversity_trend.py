"""Rank correlations of index and error by hand, and what part of an error is variance."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from experiments.diversity.effects import effects
from experiments.diversity.quantities import variance_share
from experiments.diversity.trend import rank_fall, ranks, trends
from sims.study.experiment import load_experiment
from sims.study.judging import chosen

EXPERIMENT = load_experiment("diversity")
BATCHES = 64
EITHER = np.tile([1.0, -1.0], BATCHES // 2)[:, None]
"""Of mean 0 and standard error 1/√63."""
UNIT = np.sqrt(BATCHES - 1) * EITHER
"""Of mean 0 and standard error 1."""
KEY = ("mean", "geometric")


def constant(*values: float) -> np.ndarray:
    return np.tile(np.array(values, float), (BATCHES, 1))


def swapping(back: float) -> np.ndarray:
    """Errors 4, 3, 2, 1 of which the middle two change places in every other batch.

    They are 1 apart, or ``back`` apart the other way round.
    """
    values = constant(4.0, 3.0, 2.0, 1.0)
    values[1::2, 1:3] = 2.5 - back / 2, 2.5 + back / 2
    return values


def test_ranks_are_about_their_mean_and_equal_numbers_share_them() -> None:
    found, unclear = ranks(constant(0.3, 0.1, 0.1, 0.9, 0.1 + 1e-11))
    assert found.tolist() == [1.0, -1.0, -1.0, 2.0, -1.0]
    assert not unclear.any()
    # What differs in some batch is not equal, and here of no known order.
    found, unclear = ranks(constant(0.0, 0.0) + 1e-6 * np.array([0.0, 1.0]) * UNIT)
    assert unclear.tolist() == [[False, True], [True, False]]


@pytest.mark.parametrize(("gap", "open_"), [(4.9, True), (5.1, False), (-5.1, False)])
def test_an_order_is_known_from_five_standard_errors_on(gap: float, open_: bool) -> None:
    values = constant(0.0, 100.0, 100.0 + gap)
    values[:, 2:] += UNIT
    found, unclear = ranks(values)
    assert found.tolist() == ([-1.0, 0.0, 1.0] if gap > 0 else [-1.0, 1.0, 0.0])
    assert unclear[1, 2] == unclear[2, 1] == open_
    assert unclear.sum() == 2 * open_


def test_correlation_on_average_over_batches_and_how_far_that_of_the_means_is() -> None:
    """Ranks in reverse in half of the batches, one pair of neighbours swapped in the others.

    Spearman's formula has 1 − 6·20/60 = −1 and 1 − 6·18/60 = −0.8; the means are in reverse.
    """
    errors = swapping(0.1)  # by (1 − 0.1)/2 of mean and (1 + 0.1)/2 of spread: t = 6.5
    effect = rank_fall("regime", KEY, constant(1, 2, 3, 4), errors, errors)
    assert effect.values == pytest.approx(np.tile([1.0, 0.8], BATCHES // 2))
    assert (effect.value, effect.bound) == (pytest.approx(0.9), pytest.approx(0.1))
    assert (effect.label, effect.points) == ("regime, mean, geometric", ("regime",))
    assert effect.at == {"matrix": "geometric"}
    assert effect.narrowing
    # The index that is largest where errors are is minus that.
    effect = rank_fall("regime", KEY, constant(4, 3, 2, 1), errors, errors)
    assert (effect.value, effect.bound) == (pytest.approx(-0.9), pytest.approx(0.1))


def test_what_pairs_of_no_known_order_could_change_is_a_bound() -> None:
    """Distances of ranks in units of their sum of squares, 5; the average is 0.1 off the means."""
    index = constant(1, 2, 3, 4)
    unsure = constant(0, 10, 12, 30)
    unsure[:, 2:3] += UNIT  # of the middle two at 2 standard errors
    far = constant(0, 10, 2, 30)
    far[:, 2:3] += UNIT  # of the first and the third, whose errors' ranks are 2 apart
    known, open_ = swapping(0.1), swapping(0.6)  # t = 6.5 and 2.0
    for diverse, errors, expected in (
        (index, open_, 0.1 + 1 / 5),
        (unsure, known, 0.1 + 1 / 5),
        (far, known, 0.1 + 2 / 5),
        # Both at once may move each of two ranks twice.
        (unsure, open_, 0.1 + 1 / 5 + 1 / 5 + 2 / 5),
    ):
        effect = rank_fall("regime", KEY, diverse, errors, errors)
        assert (effect.value, effect.bound) == (pytest.approx(0.9), pytest.approx(expected))


def test_no_order_of_open_pairs_is_beyond_the_bound() -> None:
    """Five configurations, against all orders that the known pairs allow.

    Of a single open pair the bound is all that it could change.
    """
    orders = np.array(list(permutations(range(5)))) - 2.0

    def allowed(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        centred, unclear = ranks(values)
        signs = np.sign(orders[:, :, None] - orders[:, None, :])
        wrong = (signs != np.sign(centred[:, None] - centred)) & ~unclear
        return centred, orders[~wrong.any((1, 2))]

    single = several = 0
    for seed in range(20):
        rng, spread = np.random.default_rng(seed), (2, 6)[seed % 2]
        index, errors = rng.normal(size=(2, BATCHES, 5)) + spread * rng.normal(size=(2, 1, 5))
        effect = rank_fall("regime", KEY, index, errors, errors)
        (diverse, first), (worse, second) = allowed(index), allowed(errors)
        means = diverse @ worse / 10
        change = effect.bound - abs(effect.value + means)
        worst = np.abs(first @ second.T / 10 - means).max()
        assert worst <= change + 1e-12
        several += len(first) > 1 and len(second) > 1
        if len(first) * len(second) == 2:
            single += 1
            assert worst == pytest.approx(change)
    assert single >= 3
    assert several >= 3


def heads(products: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """Two heads: errors ``alone`` and their products, (…, configuration, head, head2)."""
    return np.stack([np.stack([alone, products], -1), np.stack([products, alone], -1)], -2)


def test_trends_are_over_all_configurations_and_over_random_ones() -> None:
    """As shares of the heads' own, 0.95, 0.9, 0.85, 0.8, errors fall; the errors rise."""
    alone, shares = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0.95, 0.9, 0.85, 0.8])
    data = {"error_matrix": np.tile(heads((2 * shares - 1) * alone, alone), (BATCHES, 1, 1, 1))}
    index = {KEY: constant(0.1, 0.2, 0.3, 0.4), ("top", "noise"): constant(0.1, 0.4, 0.3, 0.2)}
    labels = ["equiangular 1.0", "random 1", "random 2", "random 3"]
    for equal, sign in ((True, 1), (False, -1)):
        found = trends("regime", labels, index, data, equal=equal)
        every, drawn = (
            found[f"regime, trend over {which}"] for which in ("configurations", "random frames")
        )
        # Ranks 1, 4, 3, 2 against 1, 2, 3, 4: 1 − 6·8/60.
        assert [effect.value for effect in every] == pytest.approx([sign, 0.2 * sign])
        assert [effect.value for effect in drawn] == pytest.approx([sign, -sign])
        assert [effect.at["matrix"] for effect in drawn] == ["geometric", "noise"]
    assert set(trends("regime", labels[:1] * 4, index, data, equal=True)) == {
        "regime, trend over configurations"
    }


def test_share_of_variance_by_hand() -> None:
    """Two sets of draws, one pair of heads: squared biases 1 and 2 of errors 4 and 8, then 3 of 4.

    The products of biases are 1, 1, 1, 1 and 2, 2, 2, 2.
    """
    bias = np.array([1.0, 3.0])[:, None, None] * np.ones((2, 2))
    error = 4 * np.ones((2, 2, 2))
    law = {"bias_matrix": np.stack([bias, 2 * bias]), "error_matrix": np.stack([error, 2 * error])}
    assert variance_share(law) == pytest.approx([0.75, 0.25])
    # Of the ensemble: what heads do not share of their biases is no bias of its.
    law["bias_matrix"] = np.array([[[[1.0, -1.0], [-1.0, 1.0]]]])
    law["error_matrix"] = np.array([[[[2.0, 0.0], [0.0, 2.0]]]])
    assert variance_share(law) == pytest.approx([1.0])


def test_roads_are_compared_where_variance_is_half_of_the_error() -> None:
    """Biases 0.2, 0.5 and 0.6 of errors 1 under either kernel; rows are on the first two."""
    gram = np.array([[[1.0, c], [c, 1.0]] for c in (0.5, 0.2, 0.1)])
    bias = np.array([0.2, 0.5, 0.6])[:, None, None] * gram
    dims = ("configuration", "head", "head2")
    rng = np.random.default_rng(5)
    wobble = 1 + 1e-3 * rng.standard_normal((BATCHES, 3, 1, 1))
    own = 1e-3 * rng.standard_normal((BATCHES, 3, 1, 1)) * np.eye(2)
    simulated = {"error_matrix": gram, "bias_matrix": bias, "noise_matrix": gram - bias}
    data = xr.Dataset({k: (("batch", *dims), v * wobble + own) for k, v in simulated.items()})
    known = {"bias_matrix": bias, "signal_matrix": 0 * gram, "noise_matrix": gram - bias}
    theory = xr.Dataset(
        {k: (("set", *dims), np.stack([v, v])) for k, v in known.items()}
        | {"grams": (dims, gram), "label": ("configuration", list("abc"))}
        | {"one_angle": ("configuration", [True] * 3)}
    )
    names = ("x, gaussian", "x, softmax")
    results = SimpleNamespace(
        estimates={name: data.assign_attrs(replicates=9) for name in names},
        predictions=dict.fromkeys(names, theory),
        settings={"regimes": {n: {} for n in names}, "drawn_frames_alone": {}},
    )
    found = effects(results)  # type: ignore[arg-type]
    rows = [claim for claim in EXPERIMENT.claims if claim.id == "first-order-range"]
    assert len(rows) == 4
    for claim in rows:
        kernel = claim.effects.rpartition(", ")[2]
        assert len(found[claim.effects]) == 3
        labels = [effect.label for effect in chosen(found[claim.effects], claim)]
        assert labels == [f"x, {kernel}, a", f"x, {kernel}, b"]
