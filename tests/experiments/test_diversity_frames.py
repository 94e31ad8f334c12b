"""Frames drawn with every batch: their law, their errors, and the correlation by hand."""

from functools import partial
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy.stats import pearsonr

from experiments.diversity import simulate
from experiments.diversity.drawn import fall, over_drawn_frames, within_batches
from experiments.diversity.regimes import drawn_regimes, regimes
from sims.diversity import mean_index
from sims.montecarlo.draws import Draw
from sims.study.experiment import load_experiment

EXPERIMENT = load_experiment("diversity")
SHAPE = (5, 4, 8, 2)


def squares(frames):
    """Mean squared cosines of every two heads of one set (H, d, d_k), one pair after another."""
    return [
        [np.mean(np.linalg.svd(f.T @ g, compute_uv=False) ** 2) for g in frames] for f in frames
    ]


def test_a_batch_has_frames_of_its_own_and_a_target_where_there_is_a_law():
    draws = Draw.of(3, (), 2)
    law = regimes(EXPERIMENT)["one fixed target"].law
    (one, target), (again, _), (other, another) = (
        simulate.frames_of(draws.draw(b), SHAPE, law) for b in (0, 0, 1)
    )
    assert np.array_equal(one, again)
    assert not np.isclose(one, other).any()
    np.testing.assert_allclose(one.mT @ one, np.broadcast_to(np.eye(2), (5, 4, 2, 2)), atol=1e-12)
    assert (
        len({frame.tobytes() for frames in (one, other) for sets in frames for frame in sets}) == 40
    )
    assert not np.array_equal(target.frequency, another.frequency)
    assert simulate.frames_of(draws.draw(0), SHAPE, None)[1] is None
    # Not the generator that begins with the frames, begun again.
    assert not np.isclose(simulate.own_target(draws.draw(0), law).frequency, target.frequency).all()


def test_frames_are_drawn_beside_the_list_and_alone():
    drawn = drawn_regimes(EXPERIMENT)
    assert set(drawn) - set(regimes(EXPERIMENT)) == {"one fixed target, softmax"}
    apart, beside = drawn["one fixed target, softmax"], drawn["one fixed target"]
    assert (apart.kernel.name, beside.kernel.name) == ("softmax", "gaussian")
    assert apart.bandwidth[0] == 1.12
    for one in (apart, beside):
        assert np.array_equal(one.law(seed=4).frequency, beside.law(seed=4).frequency)
    units = simulate.units(EXPERIMENT)
    assert {f"{name}, frames drawn" for name in drawn} <= set(units)
    assert "one fixed target, softmax" not in units


def test_frames_are_haar(monte_carlo):
    """A random plane of R^8 has a quarter of every unit vector: of an axis, or of another plane."""

    def draw(seed, count):
        draws = Draw.of(seed, (), 2)
        frames = np.stack([simulate.frames_of(draws.draw(b), SHAPE, None)[0] for b in range(count)])
        first, last = frames[:, :, 0], frames[:, :, 3]
        of_another = (np.einsum("bcd,bcdq->bcq", first[..., 0], last) ** 2).sum(-1)
        parts = [of_another, (first[:, :, 0] ** 2).sum(-1), (last[:, :, 7] ** 2).sum(-1)]
        return np.stack([part.mean(1) for part in parts], axis=1)

    monte_carlo(draw, np.full(3, 0.25))


@pytest.mark.parametrize("name", ["exchangeable, softmax", "one fixed target"])
def test_errors_are_those_of_the_drawn_frames(name):
    """As `halves` has them where the list of configurations is the one that was drawn."""
    regime = regimes(EXPERIMENT)[name]
    shared = simulate.shared(regime)
    function = partial(
        simulate.replicate,
        kernel=regime.kernel,
        n=20,
        queries=3,
        features=4 if regime.lengthscale else 0,
    )
    batch = simulate.frames_of(Draw.of(4, (), 2).draw(0), SHAPE, regime.law)
    key = jax.random.key(5)
    found = simulate.over_frames(key, shared, batch, function=function)
    target = batch[1] or shared.target
    for half, own in enumerate(jax.random.split(key)):
        listed = shared._replace(frames=batch[0], root=shared.root[:5], target=target)
        expected = function(own, listed, None)["error_matrix"].mean((-2, -1))
        np.testing.assert_allclose(found["frames_error"][half], expected, rtol=1e-6)
    for own, gram in zip(batch[0], found["frames_gram"], strict=True):
        np.testing.assert_allclose(gram, squares(own), atol=1e-12)
    assert (np.ptp(found["frames_error"], axis=-1) > 0).all()


def random_grams(rng, *lead):
    frames = np.linalg.qr(rng.standard_normal((*lead, 4, 8, 2)))[0]
    cross = np.einsum("...hdp,...gdq->...hgpq", frames, frames)
    return (cross**2).sum((-2, -1)) / 2


def test_moments_of_a_batch_by_hand():
    rng = np.random.default_rng(0)
    gram, errors = random_grams(rng, 3, 6), rng.uniform(1, 2, (3, 2, 6))
    found = within_batches(errors, gram)
    for b in range(3):
        index = mean_index(gram[b])
        y = errors[b] / errors[b].mean()
        np.testing.assert_allclose(found["index"][b, 0], index.var(), rtol=1e-12)
        np.testing.assert_allclose(found["error"][b], np.cov(y[0], y[1], ddof=0)[0, 1], rtol=1e-12)
        np.testing.assert_allclose(
            found["both"][b, 0], np.cov(index, y.mean(0), ddof=0)[0, 1], rtol=1e-12
        )


def test_without_noise_it_is_the_correlation():
    rng = np.random.default_rng(1)
    gram = random_grams(rng, 1, 40)
    error = 1 - 0.3 * mean_index(gram)[0] + 0.02 * rng.standard_normal(40)
    means = {k: v.mean(0) for k, v in within_batches(np.tile(error, (1, 2, 1)), gram).items()}
    assert fall(means)[0] == pytest.approx(-pearsonr(mean_index(gram)[0], error)[0], abs=1e-12)


def test_noise_of_the_draws_does_not_weaken_it():
    """Noise three times as large as what the frames do, and yet the correlation is −1.

    With the errors of other sets of the same batch it is 1/(C − 1).
    """
    rng = np.random.default_rng(2)
    gram = random_grams(rng, 4000, 12)
    true = 1 - 0.3 * mean_index(gram)
    errors = true[:, None] + 3 * true.std() * rng.standard_normal((4000, 2, 12))
    for moved, expected in ((0, 1.0), (1, -1 / 11)):
        arrays = {"frames_error": np.roll(errors, moved, axis=-1), "frames_gram": gram}
        data = {name: SimpleNamespace(values=values) for name, values in arrays.items()}
        results = SimpleNamespace(estimates={"it, frames drawn": data})
        found = over_drawn_frames(results, "it")[0]
        assert (found.label, found.points) == ("it, mean, geometric", ("it, frames drawn",))
        assert abs(found.value - expected) < 4 * found.error < 0.3
