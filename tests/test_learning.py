"""Heads that learn: the leave-one-out error, the retraction, and what learning finds."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims import learning
from sims.learning import (
    STREAMS,
    Course,
    learn,
    learned,
    leave_one_out,
    overlap,
    retract,
    squared_error,
)
from sims.problem import FRAMES, Heads

SETTINGS = {
    "dimension": 4,
    "heads": {"count": 3, "width": 1, "angle": 20, "bandwidth": 0.7},
    "n": 48,
    "noise_sd": 0.3,
    "learning": {"steps": 60, "tasks": 1, "rate": 0.1},
    "variants": {"plain": {"penalty": 0.0, "learn_weights": False}},
}
OBJECTIVES = ("joint", "separate")
COURSE = Course.of(SETTINGS, "single", "plain")


def heads(angle=30.0, count=3, dimension=4, width=1, seed=0):
    frames = FRAMES["equiangular"](dimension, count, width, seed=seed, angle=angle)
    return Heads(frames, "gaussian", 0.7)


@pytest.mark.theory
def test_overlap_is_the_mean_squared_cosine():
    assert float(overlap(heads(30.0).frames)) == pytest.approx(0.75)
    assert float(overlap(heads(90.0).frames)) == pytest.approx(0.0, abs=1e-15)
    wide = FRAMES["equiangular"](8, 3, 2, angle=[0, 60])
    assert float(overlap(wide)) == pytest.approx((1 + 0.25) / 2)


def test_retraction_is_orthonormal_and_near():
    """It keeps orthonormal frames, and differs from U + ε by O(ε²) along the manifold."""
    frames = FRAMES["haar"](6, 3, 2)
    np.testing.assert_allclose(retract(frames), frames, atol=1e-13)
    step = jax.random.normal(jax.random.key(0), frames.shape)
    step = step - jnp.einsum("hdp,hqp,hqr->hdr", frames, frames, step)  # tangent, off the span
    for size in (1e-2, 1e-3):
        moved = retract(frames + size * step)
        np.testing.assert_allclose(moved.mT @ moved, np.tile(np.eye(2), (3, 1, 1)), atol=1e-12)
        assert float(jnp.abs(moved - frames - size * step).max()) < 10 * size**2


@pytest.mark.theory
@pytest.mark.parametrize("name", STREAMS)
def test_streams(name):
    """Odd targets, of mean variance up to 1, that see only the coordinates of their stream."""
    rotation, stream = jax.random.orthogonal(jax.random.key(1), 4), STREAMS[name](4)
    target = stream.target(rotation, jax.random.key(2))
    x = jax.random.normal(jax.random.key(3), (200, 4))
    np.testing.assert_allclose(target(-x), -target(x), atol=1e-12)
    seen = np.asarray(target.frequency @ rotation)
    if name == "single":
        np.testing.assert_allclose(seen[:, 1:], 0, atol=1e-12)
    if name == "additive":
        assert (np.abs(seen) > 1e-9).sum() == len(seen)
    many = jax.vmap(lambda key: jnp.mean(stream.target(rotation, key)(x) ** 2))
    assert float(many(jax.random.split(jax.random.key(4), 300)).mean()) < 1
    assert (name == "noise") == (float(jnp.abs(target(x)).max()) == 0.0)


def run(stream, frames, key, penalty=0.0, free=False, course=COURSE, rotation=None):
    """Learned frames, weights and overlaps, from draws of the key; one program an objective."""
    start = Heads(frames, "gaussian", 0.7)
    turned = jnp.eye(4) if rotation is None else rotation
    return learn(course, STREAMS[stream](4), turned, start, jax.random.key(key), penalty, free)


def test_learning_finds_the_one_direction():
    """Heads on a single direction turn to it and stay orthonormal; the same key, the same heads."""
    rotation, start = jax.random.orthogonal(jax.random.key(1), 4), heads(10.0).frames
    frames, weights, _ = run("single", start, 0, rotation=rotation)
    assert (np.abs(np.einsum("hdp,d->hp", frames, rotation[:, 0])) > 0.95).all()
    np.testing.assert_allclose(np.sum(np.asarray(frames) ** 2, 1), 1.0, atol=1e-12)
    np.testing.assert_allclose(weights, 1 / 3)
    np.testing.assert_array_equal(frames, run("single", start, 0, rotation=rotation)[0])


def test_penalty_parts_heads_and_weights_learn():
    start = heads(10.0).frames
    assert float(overlap(run("additive", start, 0, penalty=5.0)[0])) < 0.01
    _, weights, path = run("additive", start, 0, free=True)
    assert float(weights.sum()) > 1.2  # an even mean of heads that differ is too flat
    assert float(path[0]) == pytest.approx(np.cos(np.deg2rad(10)) ** 2)


@pytest.mark.theory
@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives_and_their_gradients_by_plain_numpy(name):
    """Heads of uneven weights one by one; the gradient by central differences."""
    rng = np.random.default_rng(2)
    x, y, weights = rng.normal(size=(9, 6)), rng.normal(size=9), np.array([0.5, 0.3, 0.4])
    start = heads(width=2, dimension=6, angle=[20, 40])

    def by_numpy(frames):
        estimates = np.zeros((3, 9))
        for h, i in np.ndindex(3, 9):
            others = np.arange(9) != i
            w = np.exp(-(((x[others] - x[i]) @ frames[h]) ** 2).sum(1) / (2 * 0.7**2))
            estimates[h, i] = w @ y[others] / w.sum()
        if name == "joint":
            pool = sum(w * e for w, e in zip(weights, estimates, strict=True))
            return sum((y[i] - pool[i]) ** 2 for i in range(9)) / 9
        return sum((y[i] - estimates[h, i]) ** 2 for h in range(3) for i in range(9)) / 27

    def ours(frames):
        moved = Heads(frames, "gaussian", 0.7)
        estimates = leave_one_out(moved, jnp.asarray(x), jnp.asarray(y))
        return squared_error(name, jnp.asarray(weights), estimates, jnp.asarray(y))

    frames = np.asarray(start.frames)
    error, slope = jax.jit(jax.value_and_grad(ours))(start.frames)
    assert float(error) == pytest.approx(by_numpy(frames), rel=1e-12)
    for h in range(3):
        direction = np.zeros_like(frames)
        direction[h] = rng.normal(size=frames.shape[1:])
        ends = [by_numpy(frames + s * direction) for s in (1e-5, -1e-5)]
        expected = float(np.sum(np.asarray(slope) * direction))
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(expected, rel=1e-6)


def test_separate_heads_know_nothing_of_each_other():
    """From one start they stay one head, and their average too; other heads change none of them."""
    u, v = heads(seed=0).frames, heads(seed=5).frames
    starts = {
        "same": jnp.stack([u[0]] * 3),
        "apart": u,
        "others": jnp.stack([u[0], v[1], v[2]]),
    }
    few = {name: replace(COURSE, steps=12, objective=name) for name in OBJECTIVES}

    def found(objective, free=False):
        return {
            name: [np.asarray(x) for x in run("additive", f, 3, free=free, course=few[objective])]
            for name, f in starts.items()
        }

    separate, joint = ({k: v[0] for k, v in found(name).items()} for name in ("separate", "joint"))
    assert np.abs(separate["same"][0] - u[0]).max() > 0.1
    for name in ("apart", "others"):
        np.testing.assert_allclose(separate[name][0], separate["same"][0], atol=1e-6)
    assert np.abs(separate["apart"][1] - separate["same"][1]).max() > 0.01
    np.testing.assert_allclose(separate["same"], np.stack([separate["same"][0]] * 3), atol=1e-6)
    # The average of equal heads is one of them, and so is its gradient.
    np.testing.assert_allclose(joint["same"], separate["same"], atol=1e-5)
    assert np.abs(joint["apart"][0] - joint["others"][0]).max() > 0.01
    # Weights have no part in the heads' own errors.
    np.testing.assert_array_equal(found("separate", free=True)["apart"][1], np.full(3, 1 / 3))


def test_a_run_is_known_by_course_seed_and_batch():
    """Learned once, from draws of its own; before it, heads at the course's angle."""
    short = replace(COURSE, steps=2)
    one = learned(short, 5, 0)
    assert learned(short, 5, 0) is one
    before, even = one.states["before"]
    for other in (learned(short, 5, 1), learned(short, 6, 0)):
        assert np.abs(np.asarray(other.rotation - one.rotation)).max() > 1e-3
        assert np.abs(np.asarray(other.before.frames - before.frames)).max() > 1e-3
        assert (jax.random.key_data(other.held_out) != jax.random.key_data(one.held_out)).any()
    assert float(overlap(before.frames)) == pytest.approx(np.cos(np.deg2rad(20)) ** 2)
    np.testing.assert_allclose(even, 1 / 3)
    after, weights = one.states["after"]
    assert np.abs(np.asarray(after.frames - before.frames)).max() > 1e-3
    np.testing.assert_allclose(weights, 1 / 3)


def test_heads_that_start_at_random():
    """No angle in common, others for every batch; the objective is the course's."""
    short = replace(COURSE, steps=2, angle=None)
    runs = [learned(short, 5, batch) for batch in range(6)]
    starts = np.array([float(overlap(one.before.frames)) for one in runs])
    assert starts.std() > 0.05
    apart = learned(replace(short, objective="separate"), 5, 0)
    np.testing.assert_array_equal(apart.before.frames, runs[0].before.frames)
    assert np.abs(np.asarray(apart.after.frames - runs[0].after.frames)).max() > 1e-3


def test_what_is_held_out_was_not_learned_from(monkeypatch):
    """The random keys of learning: of its steps, their tasks and what each draws; and the batch's.

    None of them may be a key of the held-out target, queries and data.
    """
    batch = jax.random.fold_in(jax.random.key(5, impl="threefry2x32"), 0)
    used = [batch, *jax.random.split(batch)]

    def without_learning(course, stream, rotation, start, key, *traced):
        of_steps = jax.random.split(key, course.steps)
        of_tasks = [k for s in of_steps for k in jax.random.split(s, course.tasks)]
        used.extend([key, *of_steps, *of_tasks])
        used.extend(part for task in of_tasks for part in jax.random.split(task, 3))
        return start.frames, jnp.ones(3), jnp.zeros(course.steps)

    monkeypatch.setattr(learning, "learn", without_learning)
    held_out = learned.__wrapped__(replace(COURSE, steps=2), 5, 0).held_out
    assert len(used) == 3 + 1 + 2 + 2 + 6
    words = {tuple(jax.random.key_data(each).tolist()) for each in used}
    kept = {tuple(each) for each in jax.random.key_data(held_out).tolist()}
    assert len(kept) == 3
    assert words.isdisjoint(kept)
