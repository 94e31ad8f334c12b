"""Heads that learn: the leave-one-out error, the retraction, and what learning finds."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sims import learning
from sims.errors import InputError
from sims.learning import (
    OBJECTIVES,
    STREAMS,
    Course,
    Learned,
    learn,
    learned,
    leave_one_out,
    overlap,
    retract,
)
from sims.problem import FRAMES, Heads


def heads(angle=30.0, count=3, dimension=4, width=1, seed=0):
    frames = FRAMES["equiangular"](dimension, count, width, seed=seed, angle=angle)
    return Heads(frames, "gaussian", 0.7)


@pytest.mark.theory
def test_leave_one_out_by_leaving_one_out():
    """Every label estimated by plain NumPy from all other pairs."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9, 4)), rng.normal(size=9)
    chosen = heads(width=1)
    found = np.asarray(leave_one_out(chosen, jnp.asarray(x), jnp.asarray(y)))
    for h, frame in enumerate(np.asarray(chosen.frames)):
        for i in range(9):
            others = np.arange(9) != i
            w = np.exp(-(((x[others] - x[i]) @ frame) ** 2).sum(1) / (2 * 0.7**2))
            assert found[h, i] == pytest.approx(w @ y[others] / w.sum(), rel=1e-12)


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


@pytest.mark.theory
@pytest.mark.parametrize("dimension", [1, 4, 9])
def test_isotropic_targets_are_as_rough_along_a_coordinate_in_any_dimension(dimension):
    """Waves g/√d with g ~ N(0, I): the squared length of a frequency is 1 on average, ± 5 errors.

    It is a χ² of d degrees of freedom over d, of variance 2/d.
    """

    def squares(key):
        target = STREAMS["isotropic"](dimension).target(jnp.eye(dimension), key)
        return jnp.sum(target.frequency**2, axis=1)

    found = np.ravel(jax.vmap(squares)(jax.random.split(jax.random.key(8), 200)))
    assert abs(found.mean() - 1) < 5 * np.sqrt(2 / dimension / len(found))


OPTIONS = {"n": 48, "noise_sd": 0.3, "steps": 60, "tasks": 1, "rate": 0.1}


def test_learning_finds_the_one_direction():
    """Heads on a single direction turn to it and stay orthonormal; the same key, the same heads."""
    rotation, start = jax.random.orthogonal(jax.random.key(1), 4), heads(10.0)
    run = jax.jit(lambda key: learn(STREAMS["single"](4), rotation, start, key, **OPTIONS))
    found = run(jax.random.key(0))
    assert (jnp.abs(jnp.einsum("hdp,d->hp", found.frames, rotation[:, 0])) > 0.95).all()
    np.testing.assert_allclose(jnp.sum(found.frames**2, 1), 1.0, atol=1e-12)
    np.testing.assert_allclose(found.weights, 1 / 3)
    np.testing.assert_array_equal(found.frames, run(jax.random.key(0)).frames)


def test_penalty_parts_heads_and_weights_learn():
    rotation = jnp.eye(4)
    start = heads(10.0)

    def run(penalty, free):
        key = jax.random.key(0)
        return learn(STREAMS["additive"](4), rotation, start, key, penalty=penalty,
                     learn_weights=free, **OPTIONS)  # fmt: skip

    run = jax.jit(run)
    assert float(overlap(run(5.0, False).frames)) < 0.01
    free = run(0.0, True)
    assert float(free.weights.sum()) > 1.2  # an even mean of heads that differ is too flat
    assert float(free.overlap[0]) == pytest.approx(np.cos(np.deg2rad(10)) ** 2)


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
        return OBJECTIVES[name](jnp.asarray(weights), estimates, jnp.asarray(y))

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
    rotation, u, v = jnp.eye(4), heads(seed=0).frames, heads(seed=5).frames
    starts = {
        "same": jnp.stack([u[0]] * 3),
        "apart": jnp.stack([u[0], u[1], u[2]]),
        "others": jnp.stack([u[0], v[1], v[2]]),
    }

    @partial(jax.jit, static_argnames="objective")
    def run(frames, free, objective):
        start = Heads(frames, "gaussian", 0.7)
        few = OPTIONS | {"steps": 12}
        return learn(
            STREAMS["additive"](4), rotation, start, jax.random.key(3), objective=objective,
            learn_weights=free, **few,
        )  # fmt: skip

    separate = {name: run(frames, False, "separate").frames for name, frames in starts.items()}
    assert float(jnp.abs(separate["same"][0] - u[0]).max()) > 0.1
    for name in ("apart", "others"):
        np.testing.assert_allclose(separate[name][0], separate["same"][0], atol=1e-6)
    assert float(jnp.abs(separate["apart"][1] - separate["same"][1]).max()) > 0.01
    np.testing.assert_allclose(separate["same"], jnp.stack([separate["same"][0]] * 3), atol=1e-6)
    joint = {name: run(frames, False, "joint").frames for name, frames in starts.items()}
    # The average of equal heads is one of them, and so is its gradient.
    np.testing.assert_allclose(joint["same"], separate["same"], atol=1e-5)
    assert float(jnp.abs(joint["apart"][0] - joint["others"][0]).max()) > 0.01
    # Weights have no part in the heads' own errors.
    np.testing.assert_array_equal(run(starts["apart"], True, "separate").weights, np.full(3, 1 / 3))


def test_bad_settings_are_refused():
    wrongs = ({"n": 0}, {"steps": 0}, {"rate": 0.0}, {"penalty": -1.0}, {"objective": "seperate"})
    for wrong in wrongs:
        with pytest.raises(InputError, match="learning"):
            learn(STREAMS["noise"](4), jnp.eye(4), heads(), jax.random.key(0), **(OPTIONS | wrong))


COURSE = Course.of(
    {
        "dimension": 3,
        "heads": {"count": 2, "width": 1, "angle": 20, "bandwidth": 0.7},
        "n": 16,
        "noise_sd": 0.5,
        "learning": {"steps": 2, "tasks": 1, "rate": 0.05},
        "variants": {"plain": {"penalty": 0.0, "learn_weights": False}},
    },
    "single",
    "plain",
)


def test_a_run_is_known_by_course_seed_and_batch():
    """Learned once, from draws of its own; before it, heads at the course's angle."""
    run = learned(COURSE, 5, 0)
    assert learned(COURSE, 5, 0) is run
    others = [learned(COURSE, 5, 1), learned(COURSE, 6, 0)]
    for other in others:
        assert np.abs(np.asarray(other.rotation - run.rotation)).max() > 1e-3
        assert not np.array_equal(
            jax.random.key_data(other.held_out), jax.random.key_data(run.held_out)
        )
    before, even = run.states["before"]
    starts = [other.states["before"][0].frames for other in others]
    assert min(float(np.abs(np.asarray(s - before.frames)).max()) for s in starts) > 1e-3
    assert float(overlap(before.frames)) == pytest.approx(np.cos(np.deg2rad(20)) ** 2)
    np.testing.assert_array_equal(even, [0.5, 0.5])
    after, weights = run.states["after"]
    np.testing.assert_array_equal(after.frames, run.learned.frames)
    assert np.abs(np.asarray(after.frames - before.frames)).max() > 1e-3
    np.testing.assert_array_equal(weights, [0.5, 0.5])


def test_heads_that_start_at_random():
    """No angle in common, others for every batch; the objective is the course's."""
    courses = {name: replace(COURSE, angle=None, objective=name) for name in OBJECTIVES}
    runs = [learned(courses["joint"], 5, batch) for batch in range(8)]
    starts = np.array([float(overlap(run.before.frames)) for run in runs])
    assert starts.std() > 0.1
    assert len(set(starts)) == 8
    np.testing.assert_allclose(jnp.sum(runs[0].before.frames ** 2, 1), 1, atol=1e-12)
    apart = learned(courses["separate"], 5, 0)
    np.testing.assert_array_equal(apart.before.frames, runs[0].before.frames)
    assert float(jnp.abs(apart.after.frames - runs[0].after.frames).max()) > 1e-3


def test_leave_one_out_projects_keys_by_their_own_frames():
    """Keys seen through other frames than queries: every other pair by plain NumPy."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 4)), rng.normal(size=6)
    of_queries, of_keys = heads(seed=0).frames, heads(seed=9).frames
    chosen = Heads(of_queries, "gaussian", 0.7, key_frames=of_keys)
    estimates = np.asarray(leave_one_out(chosen, jnp.asarray(x), jnp.asarray(y)))
    q, k = (np.einsum("hdp,nd->hnp", np.asarray(f), x) for f in (of_queries, of_keys))
    w = np.exp(-(((q[:, :, None] - k[:, None]) ** 2).sum(-1)) / (2 * 0.7**2))
    w *= 1 - np.eye(6)
    np.testing.assert_allclose(estimates, (w @ y) / w.sum(-1), rtol=1e-12)


def test_what_is_held_out_was_not_learned_from(monkeypatch):
    """The random keys of learning: of its steps, their tasks and what each draws; and the batch's.

    None of them may be a key of the held-out target, queries and data.
    """
    batch = jax.random.fold_in(jax.random.key(5, impl="threefry2x32"), 0)
    used = [batch, *jax.random.split(batch)]

    def without_learning(stream, rotation, start, key, *, steps, tasks, **options):
        used.append(key)
        of_tasks = [k for s in jax.random.split(key, steps) for k in jax.random.split(s, tasks)]
        used.extend([*jax.random.split(key, steps), *of_tasks])
        used.extend(part for task in of_tasks for part in jax.random.split(task, 3))
        return Learned(start.frames, jnp.full(2, 0.5), jnp.zeros(steps))

    monkeypatch.setattr(learning, "_learn", without_learning)
    held_out = jax.random.key_data(learned.__wrapped__(COURSE, 5, 0).held_out).tolist()
    assert len(used) == 3 + 1 + 2 + 2 + 6
    words = {tuple(jax.random.key_data(each).tolist()) for each in used}
    assert words.isdisjoint(map(tuple, held_out))
    assert len({*map(tuple, held_out)}) == 3
