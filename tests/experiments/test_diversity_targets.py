"""The experiment `diversity`: targets one a batch, judged by half of their draws; open orders."""

from functools import partial
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import xarray as xr

from sims.judgement.tests import Rule, decide
from sims.montecarlo import Draw
from sims.study.experiment import load_experiment

EXPERIMENT = load_experiment("diversity")
effects, simulate, regimes = (
    EXPERIMENT.module(name) for name in ("effects", "simulate", "regimes")
)


def test_what_one_half_of_the_draws_chooses_the_other_judges():
    """No rise and no shortfall are made of noise; where there are some, the largest is found.

    4 standard errors, two of them: false alarm 1.3·10⁻⁴.
    """
    rng = np.random.default_rng(3)
    ordered = [(low, high) for low in range(6) for high in range(6) if low != high]
    even = 0.5 * np.eye(4) + 0.5
    uneven = np.ones((4, 4))
    uneven[3] = uneven[:, 3] = 0.5
    uneven[3, 3] = 1.0

    def found(*truth):
        matrices = np.stack(truth) * np.exp(0.05 * rng.standard_normal((4000, 2, 6, 1, 1)))
        data = xr.Dataset(
            {"target_error_matrix": (("batch", "half", "configuration", "h", "g"), matrices)}
        )
        results = SimpleNamespace(estimates={"x, target by target": data})
        return [e for (e,) in effects.target_by_target(results, "x", ordered).values()]

    rise, short = found(*[even] * 6)
    # The average of e^(a − b) is e^(0.05²).
    assert abs(rise.value - np.expm1(0.05**2)) < 4 * rise.error
    assert short.value == pytest.approx(0, abs=1e-12)
    rise, short = found(*[even] * 5, uneven)
    assert rise.value == pytest.approx(uneven.mean() / even.mean() - 1, abs=0.01)
    shortfall = 1 - 4 * uneven.mean() / np.linalg.eigvalsh(uneven)[-1]
    assert short.value == pytest.approx(shortfall, rel=1e-9)


def test_a_half_is_judged_along_the_other_ones_eigenvector():
    """One configuration, halves with noise of their own: written out batch by batch."""
    rng = np.random.default_rng(8)
    noise = rng.normal(size=(12, 2, 1, 3, 3))
    matrices = np.eye(3) + 0.1 * (noise + np.swapaxes(noise, -1, -2))
    data = xr.Dataset(
        {"target_error_matrix": (("batch", "half", "configuration", "h", "g"), matrices)}
    )
    results = SimpleNamespace(estimates={"x, target by target": data})
    found = effects.target_by_target(results, "x", [(0, 0)])["x, top is tight"][0]
    by_hand = []
    for first, second in matrices[:, :, 0]:
        for chosen, judged in ((first, second), (second, first)):
            top = np.linalg.eigh(chosen)[1][:, -1]
            by_hand.append(1 - judged.sum() / 3 / (top @ judged @ top))
    assert found.value == pytest.approx(np.mean(by_hand), rel=1e-9)


def test_errors_by_both_roads_are_less_theorys():
    """Theory a fifth above the simulation: its logarithm is that far off; gains have lost it."""
    gram = np.array([[[1.0, c], [c, 1.0]] for c in (0.5, 0.2, 0.0)])
    dims = ("configuration", "head", "head2")
    wobble = 1 + 1e-3 * np.random.default_rng(5).standard_normal((64, 1, 1, 1))
    simulated = {"error_matrix": gram, "bias_matrix": 0 * gram, "noise_matrix": gram}
    data = xr.Dataset({k: (("batch", *dims), v * wobble) for k, v in simulated.items()})
    known = {"bias_matrix": 0 * gram, "signal_matrix": 0.2 * gram, "noise_matrix": gram}
    theory = xr.Dataset(
        {k: (("set", *dims), np.stack([v, v])) for k, v in known.items()}
        | {"grams": (dims, gram), "label": ("configuration", list("abc"))}
        | {"one_angle": ("configuration", [True] * 3)}
    )
    results = SimpleNamespace(
        estimates={"x": data.assign_attrs(replicates=9)},
        predictions={"x": theory},
        settings={"regimes": {"x": {}}, "drawn_frames_alone": {}},
    )
    found = effects.effects(results)
    errors, gains = (found[f"{what} by both roads, gaussian"] for what in ("errors", "gains"))
    assert [e.label for e in errors] == ["x, a", "x, b", "x, c"]
    assert [e.value for e in errors] == pytest.approx([-np.log(1.2)] * 3, abs=1e-3)
    assert [e.value for e in gains] == pytest.approx([0.0] * len(gains), abs=1e-9)


def test_targets_are_drawn_one_a_batch():
    """Halves are replicates of the batch's own target, with keys of their own."""
    regime, draws = regimes.regimes(EXPERIMENT)["single index"], Draw.of(4, (), 2)
    targets = [simulate.own_target(draws.draw(b), regime.law) for b in (0, 0, 1)]
    assert np.array_equal(targets[0].phase, targets[1].phase)
    assert not np.isclose(targets[0].phase, targets[2].phase).any()
    # Of the family: functions of the heads' common plane alone.
    plane = np.kron(np.ones((4, 1)) / 2, np.eye(2))
    off = targets[2].frequency @ (np.eye(8) - plane @ plane.T)
    assert np.abs(off).max() < 1e-12
    shared = simulate.shared(regime)
    one = partial(simulate.replicate, kernel=regime.kernel, n=5, queries=3, features=0)
    got = simulate.halves(jax.random.key(2), shared, targets[2], function=one)
    for half, key in enumerate(jax.random.split(jax.random.key(2))):
        expected = one(key, shared._replace(target=targets[2]), None)["error_matrix"]
        np.testing.assert_allclose(got["target_error_matrix"][half], expected, rtol=1e-4, atol=1e-6)


def test_a_pair_whose_order_is_not_known_asks_for_batches():
    """Its bound reaches beyond the margin: until the order is known the row is open."""
    rng = np.random.default_rng(1)
    rises = 0.01 + 1e-4 * rng.standard_normal((64, 2, 2))
    index = np.zeros((64, 2))
    index[:, 1] = 1e-3 + 1e-2 * rng.standard_normal(64)
    found = list(effects.Rises("a point", ["a", "b"], rises).along(index))
    finding = decide(found, Rule("bound", 0.005, 0.95, sequential=True))
    assert finding.verdict == "inconclusive"
    assert finding.needs == {"a point": 2 * 64}
    # Known or not, a change that is within the margin is no rise beyond it.
    small = list(effects.Rises("a point", ["a", "b"], 0.1 * rises).along(index))
    assert decide(small, Rule("bound", 0.005, 0.95, sequential=True)).verdict == "supported"


def test_one_angle_is_asked_of_every_pair_of_heads():
    """Three planes that are orthogonal to each other; a fourth at an angle to each, and at two."""
    regime = regimes.regimes(EXPERIMENT)["single index"]
    frames = np.zeros((2, 4, 8, 2))
    for head in range(4):
        frames[:, head, 2 * head : 2 * head + 2] = np.eye(2)
    frames[1, 3, :2, 0] = frames[1, 3, 6:, 0] = [np.sqrt(0.5), 0]
    two = regime._replace(
        labels=("apart", "one not"), frames=frames, covariance=regime.covariance[:2]
    )
    found = EXPERIMENT.module("predict").averaged(two, 2, 2, 1)
    assert found["one_angle"].values.tolist() == [True, False]


def test_waves_of_a_drawn_target_have_the_process_length_scale(monkeypatch):
    """Squared-exponential of length ℓ: frequencies N(0, I/ℓ²), by 512 points of a Sobol set."""
    predict, seen = EXPERIMENT.module("predict"), []

    def stop(regime, frequency, x):
        seen.append(np.asarray(frequency))
        raise StopIteration

    monkeypatch.setattr(predict, "over_draws", stop)
    regime = regimes.regimes(EXPERIMENT)["exchangeable, gaussian"]._replace(lengthscale=4.0)
    with pytest.raises(StopIteration):
        predict.averaged(regime, 1, 512, 3)
    assert seen[0].shape == (512, 1, regime.frames.shape[2])
    np.testing.assert_allclose(seen[0].std(0), 1 / 4, rtol=0.05)
