"""The control variate of the signal covariance: its arithmetic, unbiasedness, and what it saves."""

import numpy as np

from sims.base import terms
from sims.montecarlo import replicate_key, root_key
from sims.montecarlo.draws import PILOT
from sims.simulation import draw, ensemble, estimate
from sims.simulation.plan import Plan
from sims.simulation.replicate import LEAST_N_EFF, PILOT_DESIGNS
from tests.by_hand import refused
from tests.simulation.reference import assert_close, log_kernel, reference


def kernels(task, heads, queries, key, n):
    """K (Q, H, n) and m(X) of a design, in float64."""
    x, _ = draw(task, key, n)
    frames, b = np.asarray(heads.frames), np.asarray(heads.bandwidth)
    q = np.einsum("hdp,qd->qhp", frames, np.asarray(queries))[:, :, None]
    k = np.einsum("hdp,nd->hnp", frames, np.asarray(x))[None]
    return np.exp(log_kernel(heads.kernel.name, q, k, b[:, None])), np.asarray(task.target(x))


def test_equals_plain_numpy(make):
    task, heads, queries = make("softmax", bandwidth=[0.3, 0.6, 1.1])
    n, batches, replicates = 41, 2, 5
    run = {"batches": batches, "replicates_per_batch": replicates, "precision": "float64"}
    result = estimate(task, heads, n, queries, 7, **run, control_variate=True)
    k, m = kernels(task, heads, queries, replicate_key(root_key(7), PILOT, 0), 16 * n)
    mass, limit = k.mean(-1), (k @ m) / k.sum(-1)
    used = k.sum(-1) ** 2 / (k**2).sum(-1) >= LEAST_N_EFF * PILOT_DESIGNS
    assert 0 < used.sum() < used.size
    expected = reference(task, heads, n, queries, 7, batches, replicates)
    for batch in range(batches):
        values, covariance = [], 0.0
        for r in range(replicates):
            k, m = kernels(task, heads, queries, replicate_key(root_key(7), batch, r), n)
            a = used[..., None] * k * (m - limit[..., None]) / mass[..., None]
            values.append(a.mean(-1))
            covariance += np.stack([np.cov(one) for one in a]) / n / replicates
        centred = np.array(values) - np.mean(values, 0)
        spread = np.einsum("rqh,rqg->qhg", centred, centred) / (replicates - 1)
        expected["signal_covariance"][batch] += covariance - spread
        expected["bias_product"][batch] -= (covariance - spread) / replicates
    assert_close(result, expected, 1e-11)


def test_unbiased_and_better(make):
    """Paired differences within 4 MCSE on six scalars (false alarm below 1e-3); gain ≥ 10."""
    task, heads, queries = make(width=1, scale=0.3)
    run = {"batches": 48, "replicates_per_batch": 16, "precision": "float64"}
    plain = estimate(task, heads, 300, queries, 5, **run)
    better = estimate(task, heads, 300, queries, 5, **run, control_variate=True)
    for name in (
        "squared_bias",
        "variance",
        "covariance",
        "signal_variance",
        "mse",
        "ensemble_variance",
    ):
        difference = better[name] - plain[name]
        assert abs(difference.mean()) <= 4 * terms.mcse(difference), name
    for name in ("signal_variance", "cross_signal_covariance"):
        assert float(plain[f"{name}_mcse"] / better[f"{name}_mcse"]) ** 2 >= 10, name
    for name in ("bias", "noise_covariance"):
        np.testing.assert_array_equal(better[name], plain[name])


def test_does_not_depend_on_how(make, monkeypatch):
    task, heads, queries = make()
    run = {"batches": 2, "replicates_per_batch": 4, "precision": "float64", "control_variate": True}
    first = estimate(task, heads, 60, queries, 3, **run)
    monkeypatch.setenv("SIMS_NATIVE", "0")
    monkeypatch.setattr(ensemble, "make_plan", lambda *_, **__: Plan(4, 13, 2, 2, 0))
    other = estimate(task, heads, 60, queries, 3, **run)
    assert_close(other, {name: first[name].values for name in ("signal_covariance", "mse")}, 1e-11)
    with refused("resume"):
        estimate(task, heads, 60, queries, 3, **(run | {"control_variate": False}), resume=first)


def test_needs_two_keys(make):
    task, heads, queries = make()
    with refused("control_variate"):
        estimate(task, heads, 1, queries, 3, control_variate=True)


def test_switched_off_where_few_keys_are_attended_to(make):
    """With fewer keys than the threshold there is no control, so nothing can be made worse."""
    task, heads, queries = make("softmax")
    run = {"batches": 2, "replicates_per_batch": 4, "precision": "float64"}
    n = int(LEAST_N_EFF) - 1
    plain = estimate(task, heads, n, queries, 3, **run)
    same = estimate(task, heads, n, queries, 3, **run, control_variate=True)
    assert_close(same, {name: plain[name].values for name in ("signal_covariance", "mse")}, 1e-12)
