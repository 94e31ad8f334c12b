"""Sparse weight rules against root finding, sorting, libraries, differences and their limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax
from sklearn.neighbors import KNeighborsRegressor

from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Task
from sims.simulation import estimate, nw_weights
from sims.simulation.all_keys import rule_sums
from sims.simulation.native import native_rule_sums, usable
from sims.weights import FACTORIES, RULES, SCORES, WeightRule
from sims.weights.entmax import Entmax
from sims.weights.sparse import Relu, ReluGap, TopK
from tests.by_hand import refusals, refused
from tests.simulation.reference import entmax

POWERS = [0.2, 1.0, 1.5, 2.0, 3.0, 60.0]


def scores(n, scale=1.0, seed=0):
    return scale * np.random.default_rng(seed).normal(size=n)


@pytest.mark.parametrize("nu", POWERS)
def test_entmax_solves_its_defining_equation(nu):
    rule = jax.jit(Entmax(nu))
    for n, scale in (1, 1.0), (40, 3.0), (900, 20.0):
        z = scores(n, scale, seed=n)
        np.testing.assert_allclose(rule(z), entmax(z, nu), rtol=0, atol=2e-12)


def test_entmax_tends_to_softmax():
    """The gap falls like 1/ν, down to rounding."""
    z = scores(50, 2.0)
    weights = softmax(z)
    gaps = [np.abs(jax.jit(Entmax(nu))(z) - weights).max() for nu in (1e3, 1e4, 1e20)]
    assert gaps[0] / gaps[1] == pytest.approx(10, rel=0.02)
    assert gaps[2] < 1e-15


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("nu", [1e-20, 0.5, 1.0, 2.5, 1e20])
def test_weights_are_weights_at_every_scale(dtype, nu):
    z = scores(3000).astype(dtype)
    order, weigh = np.argsort(z), jax.jit(Entmax(nu))
    for scale in (1e-6, 1.0, 1e6):
        w = np.asarray(weigh(dtype(scale) * z))
        assert w.dtype == dtype
        assert (w >= 0).all()
        assert w.sum() == pytest.approx(1, abs=200 * float(np.finfo(dtype).eps))
        assert (np.diff(w[order]) >= 0).all()


SMOOTH = [*(Entmax(nu) for nu in (0.7, 1.0, 2.0)), ReluGap(0.7), TopK(4, "softmax")]


@pytest.mark.parametrize(
    "rule",
    [*SMOOTH, Relu(1.0, 0.5, "zero"), TopK(4, "uniform")],
)
def test_keys_out_of_reach_and_batches(rule):
    """A score of −∞ is a key that is not there; rows under vmap are rows alone."""
    z = scores(30)
    out = np.where(np.arange(30) % 3 == 0, -np.inf, z)
    rule = jax.jit(rule)
    w = np.asarray(rule(out))
    assert (w[::3] == 0).all()
    np.testing.assert_allclose(w[out > -np.inf], rule(out[out > -np.inf]), atol=1e-15)
    assert not np.any(rule(np.full(30, -np.inf)))
    rows = np.stack([z, 10 * z, out])
    alone = np.stack([rule(row) for row in rows])
    np.testing.assert_allclose(jax.jit(jax.vmap(rule))(rows), alone, atol=1e-15)


@pytest.mark.parametrize(
    "rule",
    [*SMOOTH, Relu(0.8, 0.3, "uniform")],
)
def test_derivatives_by_finite_differences(rule):
    """Forwards and backwards; second ones of the powers, which the others are made of."""
    z, close = scores(7, 0.15, seed=3), {"atol": 1e-6, "rtol": 1e-6}
    forwards = jax.jit(jax.jacfwd(rule))
    assert (np.asarray(jax.jit(rule)(z)) > 0).sum() > 2
    np.testing.assert_allclose(forwards(z), differences(jax.jit(rule), z), **close)
    np.testing.assert_allclose(jax.jit(jax.jacrev(rule))(z), forwards(z), atol=1e-12)
    if isinstance(rule, Entmax):
        second = jax.jit(jax.jacfwd(jax.jacrev(rule)))(z)
        np.testing.assert_allclose(second, differences(forwards, z), **close)


def differences(function, z):
    """Central ones, in the last axis."""
    steps = 1e-5 * np.eye(len(z))
    return np.stack([(function(z + s) - function(z - s)) / 2e-5 for s in steps], axis=-1)


@pytest.mark.parametrize("empty", ["zero", "uniform"])
def test_relu_by_its_formula(empty):
    z = scores(20)
    parts = np.maximum(z / 0.7 - 0.4, 0)
    rule, far = (jax.jit(Relu(0.7, offset, empty)) for offset in (-0.4, -90.0))
    np.testing.assert_allclose(rule(z), parts / parts.sum(), rtol=1e-14)
    np.testing.assert_array_equal(far(z), 0 if empty == "zero" else 1 / 20)


def test_top_k_is_nearest_neighbour_regression():
    rng = np.random.default_rng(1)
    frame, keys, labels = (
        rng.normal(size=(1, 4, 2)),
        rng.normal(size=(200, 4)),
        rng.normal(size=200),
    )
    x = rng.normal(size=(5, 4))
    seen, at = keys @ frame[0], x @ frame[0]
    near = KNeighborsRegressor(n_neighbors=9).fit(seen, labels)
    uniform = Heads(frame, FACTORIES["top_k"](9, "distance"), 0.4)
    ours = [float(nw_weights(uniform, query, keys)[0] @ labels) for query in x]
    np.testing.assert_allclose(ours, near.predict(at), rtol=1e-12)
    of_ties = jax.jit(TopK(3, "uniform"))(np.zeros(8))
    np.testing.assert_allclose(of_ties, [1 / 3] * 3 + [0] * 5)
    near.set_params(weights=lambda d: np.exp(-(d**2) / (2 * 0.4**2)))
    softmax = Heads(frame, FACTORIES["top_k_softmax"](9, "distance"), 0.4)
    ours = [float(nw_weights(softmax, query, keys)[0] @ labels) for query in x]
    np.testing.assert_allclose(ours, near.predict(at), rtol=1e-11)


@pytest.mark.parametrize("name", ["dot", "distance"])
def test_scores_and_temperature(name):
    """Every rule sees ⟨q, k⟩/s or −‖q − k‖²/2s of the head's own projections, s = b²."""
    rng = np.random.default_rng(2)
    frame, x, keys = rng.normal(size=(1, 5, 2)), rng.normal(size=5), rng.normal(size=(11, 5))
    q, k, s = x @ frame[0], keys @ frame[0], 1.3**2
    z = k @ q / s if name == "dot" else -((k - q) ** 2).sum(1) / (2 * s)
    for kind, options in {
        "relu": {"gain": 0.5, "offset": 2.0},
        "relu_gap": {"gain": 0.5},
        "sparsemax": {},
        "entmax": {"nu": 2.5},
        "top_k": {"k": 4},
        "top_k_softmax": {"k": 4},
    }.items():
        rule = FACTORIES[kind](**options, scores=name)
        w = nw_weights(Heads(frame, rule, 1.3), x, keys)[0]
        np.testing.assert_allclose(w, jax.jit(rule.weights)(z), atol=1e-13, err_msg=kind)


def test_equal_options_are_one_rule():
    """Rules are static arguments of compiled programs: equal ones share theirs."""
    assert FACTORIES["entmax"](nu=2) == FACTORIES["entmax"](alpha=1.5)
    assert FACTORIES["entmax"](nu=1).weights == RULES["sparsemax"].weights
    assert FACTORIES["entmax"](nu=2) != FACTORIES["entmax"](nu=2.5)
    assert FACTORIES["top_k"](3) != FACTORIES["top_k_softmax"](3)


test_bad_options_are_one_line = refusals(
    [
        ("entmax", {}, "heads.kernel: got 'neither'; allowed: exactly one of nu, alpha"),
        ("entmax", {"nu": 1, "alpha": 2}, "heads.kernel: got 'both'; allowed: exactly one of"),
        ("entmax", {"nu": 0}, "heads.kernel.nu: got 0; allowed: 1e-20 to"),
        ("entmax", {"nu": 1e21}, r"heads.kernel.nu: got 1e\+21; allowed: 1e-20 to 1e\+20"),
        ("entmax", {"alpha": 1.0}, "heads.kernel.alpha: got 1.0; allowed: > 1"),
        ("sparsemax", {"scores": "cosine"}, "heads.kernel.scores: got 'cosine'; allowed: dot, dis"),
        ("relu", {"gain": 0.0}, "heads.kernel.gain: got 0.0; allowed: finite and > 0"),
        ("relu", {"offset": np.nan}, "heads.kernel.offset: got 'NaN or infinity'"),
        ("relu", {"empty": "one"}, "heads.kernel.empty: got 'one'; allowed: zero, uniform"),
        ("top_k", {"k": 2.0}, "heads.kernel.k: got 2.0; allowed: an integer >= 1"),
    ],
    lambda kind, options: FACTORIES[kind](**options),
)


def test_more_keys_than_there_are():
    rule = FACTORIES["top_k"](20)
    heads = Heads(FRAMES["equiangular"](3, 1, 1, angle=0), rule, 0.5)
    task = Task(DESIGNS["isotropic"](3), TARGETS["constant"](3), 1.0)
    with refused(r"n: got 19; allowed: 20 or more, which top_k \(dot\)"):
        estimate(task, heads, 19, np.zeros((1, 3)), 0, batches=2)
    with refused(r"heads.kernel.k: got 20; allowed: 1 to n = 19"):
        nw_weights(heads, np.zeros(3), np.zeros((19, 3)))


OPTIONS = {
    "entmax": {"alpha": 1.5},
    "top_k": {"k": 2},
    "top_k_softmax": {"k": 2},
    "merged": {"stride": 2},
}
POSITIVE = WeightRule("positive", SCORES["dot"], lambda scores: jnp.maximum(scores, 0) / 8)
ALL_RULES = [make(**OPTIONS.get(name, {})) for name, make in FACTORIES.items()]


@pytest.mark.parametrize("rule", [*ALL_RULES, FACTORIES["relu"](empty="uniform"), POSITIVE])
def test_a_score_that_is_nan_gives_nan(rule):
    """Not a key less, nor an empty neighbourhood; so in the sums in C++, which other heads keep."""
    rng = np.random.default_rng(0)
    queries, keys, columns = (rng.normal(size=size) for size in ((2, 2, 2), (2, 2, 70), (1, 70)))
    assert np.isfinite(rule(queries[0, :, 0], keys[:, 0], 1.0)).all()
    keys[1, 1, 66] = np.nan
    assert np.isnan(rule(queries[0, :, 0], keys[:, 1], 1.0)).all()
    sums = [rule_sums, *([native_rule_sums] if usable(rule, "cpu") else [])]
    for summed in sums:
        linear, gram = summed(rule, *map(jnp.asarray, (queries, keys, columns, np.ones(2))))
        assert np.isnan(linear).all((0, 2)).tolist() == [False, True]
        assert np.isnan(gram).all(0).tolist() == [[False, True], [True, True]]
