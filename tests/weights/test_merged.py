"""Merging as a weight rule, against loops over chunks."""

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from sims.base.errors import InputError
from sims.problem import FRAMES, SEQUENCES, TARGETS, Heads, Task, TrigonometricSeries
from sims.simulation import estimate, nw_weights
from sims.simulation.all_keys import over_slots
from sims.weights import FACTORIES


def by_loops(query, keys, gates, scores, temperature):
    stride, slots = len(gates), []
    chunks = [range(i, min(i + stride, len(keys))) for i in range(0, len(keys), stride)]
    for chunk in chunks:
        key = sum(gates[i % stride] * keys[i] for i in chunk)
        distance = -((query - key) ** 2).sum() / 2
        slots.append((query @ key if scores == "dot" else distance) / temperature)
    p = np.exp(np.array(slots) - max(slots))
    p /= p.sum()
    return np.array([gates[i % stride] * p[i // stride] for i in range(len(keys))])


@pytest.mark.parametrize("scores", ["dot", "distance"])
@pytest.mark.parametrize("gates", [None, [0.2, 0.9, 0.4]])
@pytest.mark.parametrize("n", [6, 7])
def test_weights_by_loops(scores, gates, n):
    """The last chunk of 7 tokens is a part of one."""
    rng = np.random.default_rng(n)
    query, keys = rng.normal(size=3), rng.normal(size=(n, 3))
    rule = FACTORIES["merged"](3, gates=gates, scores=scores)
    found = nw_weights(Heads(np.eye(3)[None], rule, 0.8), query, keys)[0]
    gates = gates or [1 / 3] * 3
    np.testing.assert_allclose(found, by_loops(query, keys, gates, scores, 0.64), rtol=1e-12)


def test_one_token_a_slot_is_the_kernel():
    """By another program: kernels stream, rules do not."""
    task = Task(SEQUENCES["autoregressive"](3, 0.6), TARGETS["rbf"](3, features=4), 0.5)
    frames, queries = FRAMES["equiangular"](3, 2, 1, angle=40), np.array([[0.2, -0.4, 0.5]])
    options = {"batches": 2, "replicates_per_batch": 4, "precision": "float64"}
    found, expected = (
        estimate(task, Heads(frames, rule, 0.9), 24, queries, 3, **options)
        for rule in (FACTORIES["merged"](1, scores="distance"), "gaussian")
    )
    for name in ("bias", "noise_covariance", "signal_covariance"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(("scores", "gates"), [("dot", [0.5, 0.5]), ("distance", [0.2, 0.9, 0.4])])
def test_heads_over_slots_are_the_rule_over_tokens(monkeypatch, scores, gates):
    """With a constant in the target, which gates of any sum do not keep, and with drawn labels."""
    target = TrigonometricSeries([1.0, 0.7], [[0.0, 0.0, 0.0], [0.5, 1.0, -0.3]], [0.0, 0.2])
    task = Task(SEQUENCES["smooth"](3, 0.6), target, 0.5)
    rule = FACTORIES["merged"](len(gates), gates=gates, scores=scores)
    heads = Heads(FRAMES["equiangular"](3, 2, 1, angle=40), rule, [0.9, 0.7])
    queries = np.array([[0.2, -0.4, 0.5], [1.0, 0.3, 0.0]])
    options = {"batches": 2, "replicates_per_batch": 4, "precision": "float64"}
    found = estimate(task, heads, 60, queries, 3, **options)
    assert over_slots(heads, 61) is None
    monkeypatch.setattr("sims.simulation.ensemble.over_slots", lambda heads, n: None)
    expected = estimate(task, heads, 60, queries, 3, **options)
    for name in ("bias", "noise_covariance", "signal_covariance", "empty_rate"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"stride": 0}, "stride"),
        ({"stride": 2, "gates": [0.5]}, "gates"),
        ({"stride": 1, "gates": [np.inf]}, "gates"),
        ({"stride": 2, "scores": "cosine"}, "scores"),
    ],
)
def test_options_that_are_none(options, field):
    with pytest.raises((InputError, TypeCheckError), match=field):
        FACTORIES["merged"](**options)
