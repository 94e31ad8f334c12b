"""Leakage: copies, clusters of rows and dependent errors are found; clean tables are silent."""

import numpy as np
import pytest

from sims.advise import advise_data, prepared
from sims.advise.leakage import find_dependence

RNG = np.random.default_rng(0)
N = 240
X, E, ROWS = RNG.normal(size=(N, 4)), RNG.normal(size=N), np.arange(N)
SMOOTH = np.sin(1.3 * X[:, 0]) + 0.4 * X[:, 1] + 0.5 * E
BITS, LEVELS = RNG.integers(0, 2, (N, 8)), RNG.integers(0, 3, (N, 4))
AGE, STORE = RNG.integers(1, 53, N), ROWS // 10
EFFECT = RNG.normal(size=N)
LINE, MAP = np.sort(X[:, 0]), np.stack([ROWS // 16, ROWS % 16], 1)
PATIENT = ROWS // 5
SERIES = np.zeros(N)
for t in range(1, N):
    SERIES[t] = 0.9 * SERIES[t - 1] + 0.4 * E[t]

DOUBLED = np.r_[X, X.round(3)], np.r_[SMOOTH, SMOOTH.round(3)]
SHUFFLED = RNG.permutation(N)
NEAR = X[PATIENT, :2] + 0.01 * X[:, 2:]
TABLES = {
    "smooth": (X, SMOOTH),
    "noise": (X, E),
    "sorted by output": (X[np.argsort(SMOOTH)], np.sort(SMOOTH)),
    "sorted noise": (X, np.sort(E)),
    "sorted by a feature": (X[np.argsort(X[:, 0])], SMOOTH[np.argsort(X[:, 0])]),
    "curve": (LINE, np.sin(5 * LINE) + 0.3 * E),
    "curve without noise": (LINE, np.sin(2 * LINE)),
    "parabola of integers": (ROWS, (ROWS / 100) ** 2),
    "step": (ROWS, (ROWS > 100) + 0.2 * E),
    "map": (MAP, np.sin(MAP[:, 0] / 4) + 0.3 * E),
    "map without noise": (MAP, np.sin(MAP[:, 0] / 4) * np.cos(MAP[:, 1] / 3)),
    "levels": (LEVELS, LEVELS[:, 0] * LEVELS[:, 1] + 0.3 * E),
    "levels without noise": (LEVELS, LEVELS[:, 0] * LEVELS[:, 1]),
    "bits": (BITS, BITS.sum(1) + 0.1 * E),
    "parity": (BITS, BITS.sum(1) % 2),
    "ages and a class": (AGE, RNG.random(N) < AGE / 53),
    "counts": (np.stack([AGE, LEVELS[:, 0]], 1), RNG.poisson(AGE / 10)),
    "shops in order": (np.stack([STORE, X[:, 0]], 1), EFFECT[STORE] + X[:, 0] + 0.3 * E),
    "heavy tails": (np.exp(2 * X), SMOOTH),
    "rounded": (X.round(1), SMOOTH.round(1)),
    "rounded copies": (*DOUBLED, "repeat others"),
    "jittered copies": (np.r_[X, X[:50] + 1e-3], np.r_[SMOOTH, SMOOTH[:50] + 1e-3], "repeat"),
    "patients near in x": (NEAR, EFFECT[PATIENT] + 0.1 * E, "nearly equal features"),
    "patients near in file": (X, X[:, 0] + EFFECT[PATIENT] + 0.3 * E, "in file order"),
    "a series": (X, np.sin(X[:, 0]) + SERIES, "in file order"),
    "a series of time": (ROWS / 9, SERIES, "in x"),
    "a shuffled series": (SHUFFLED / 9, SERIES[SHUFFLED], "in x"),
    "a shuffled series and a feature": (
        np.stack([SHUFFLED / 9, X[SHUFFLED, 0]], 1),
        (SERIES + np.sin(X[:, 0]))[SHUFFLED],
        "in the order of a feature",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_leaking_tables_alone_raise_an_alarm(name):
    x, y, *words = TABLES[name]
    data = prepared(np.reshape(1.0 * x, (len(x), -1)), 1.0 * y)
    signs = "; ".join([*data.signs, *find_dependence(data.inputs.to_numpy(), data.outputs)])
    assert words[0] in signs if words else signs == ""


def test_near_copies_leave_the_advice_as_it_is():
    """Rows, and the same rows rounded; groups silence the alarm."""
    once, twice = (prepared(x, y) for x, y in ((X, SMOOTH), DOUBLED))
    np.testing.assert_array_equal(twice.features, once.features)
    assert "240 of 480 rows repeat others within 0.0007 standard" in twice.notes[0]
    grouped = prepared(*DOUBLED, np.arange(2 * N) % N)
    assert (len(grouped.features), grouped.signs) == (2 * N, ())


def test_the_alarm_names_the_remedy():
    series = np.stack([ROWS / 9, SERIES], 1)
    alone = advise_data(prepared(series[:, :1], series[:, 1]))
    assert alone.alarm.startswith("Leakage: errors of neighbouring rows correlate by 0.")
    assert alone.alarm.endswith("with --groups.")
    assert advise_data(prepared(series[:, :1], series[:, 1], ROWS // 20)).alarm == ""
