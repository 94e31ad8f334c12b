"""Noisy lessons of `learned_temperature`."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np

from sims.study.experiment import load_experiment

learned = load_experiment("learned_temperature")


def test_labels_of_lessons_have_noise_of_the_standard_deviation_that_is_stated():
    """``y = m(x) + σz``: with the target m(x) = x and σ = ½, y − x has the variance ¼.

    Of 1,500 keys and 500 queries, within 4.4 standard errors ``σ²√(2/n)``.
    """
    module = learned.module("learning")
    course = module.Course.of(learned.settings, "smooth", "softmax")
    course = replace(course, n=1500, queries=500, tasks=1, steps=1, noise_sd=0.5)
    same = SimpleNamespace(target=lambda _key: lambda x: x[:, 0])
    _, x, y = jax.jit(lambda key: module.lessons(same, key, course))(jax.random.key(3))
    noise = np.asarray(y - x, float).ravel()
    for part in (noise[:1500], noise[1500:]):
        assert abs(np.mean(part**2) - 0.25) < 4.4 * 0.25 * (2 / part.size) ** 0.5
