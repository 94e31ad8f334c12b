"""Errors of all configurations of heads at once, with targets, queries and keys drawn anew."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sims.montecarlo import Draw, Replicates
from sims.problem import Kernel, Target, TrigonometricSeries
from sims.simulation import target_values, with_quick_bits
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit, Unit, grid_units

from .regimes import DRAWN, EACH, Regime, drawn_regimes, regimes

OUTPUTS = ("error_matrix", "bias_matrix", "noise_matrix")
PAIR = ("head", "head2")
HALVES = 2
"""Independent halves of the draws of one target: what the first chooses the second judges."""
DESIGNS = 2
"""Sets of keys for one draw of target and queries: a product of two errors, one from each,
estimates the product of biases without bias."""


class Shared(NamedTuple):
    """What all replicates of a regime share; traced.

    Attributes:
        frames: (C, H, d, d_k).
        root: of the keys' covariance, (C, d, d), symmetric.
        bandwidth: (H,).
        seen: standard deviation of each coordinate of the queries, (d,); 0 where they are 0.
        target: m where it is fixed.
        lengthscale: of the squared-exponential law where m is drawn.
        noise_sd: σ.
    """

    frames: Array
    root: Array
    bandwidth: Array
    seen: Array
    target: TrigonometricSeries
    lengthscale: float
    noise_sd: Array


def units(experiment: Experiment) -> dict[str, Unit]:
    """The grid's points (the counterexamples), and units for every regime.

    Regimes share their draws, as the configurations of one do.
    """
    settings, own = experiment.settings, dict[str, Unit]()
    for name, regime in regimes(experiment).items():
        about = {"regime": name, "configurations": "; ".join(regime.labels)}
        function = of_regime(regime, settings)
        dims = ("configuration", *PAIR)
        sampler = Replicates(function, constants=shared(regime), dims=dict.fromkeys(OUTPUTS, dims))
        own[name] = SampledUnit(sampler, about, settings["replicates"])
        if regime.law:
            sampler = Replicates(
                partial(halves, function=function),
                constants=shared(regime),
                per_batch=partial(own_target, law=regime.law),
                dims={"target_error_matrix": ("half", *dims)},
            )
            own[EACH.format(name)] = SampledUnit(sampler, about, settings["replicates_each"])
    drawn = settings["frames_drawn"]
    for name, regime in drawn_regimes(experiment).items():
        shape = (drawn["configurations"], *regime.frames.shape[1:])
        sampler = Replicates(
            partial(over_frames, function=of_regime(regime, settings)),
            constants=shared(regime),
            per_batch=partial(frames_of, shape=shape, law=regime.law),
            dims={"frames_error": ("half", "drawn"), "frames_gram": ("drawn", *PAIR)},
        )
        own[DRAWN.format(name)] = SampledUnit(sampler, {"regime": name}, drawn["replicates"])
    return grid_units(experiment) | own


def of_regime(regime: Regime, settings: Mapping[str, Any]) -> Callable[..., dict[str, Array]]:
    """A regime's :func:`replicate`, of random key, what is shared and what is a batch's."""
    return partial(
        replicate,
        kernel=regime.kernel,
        n=regime.n,
        queries=settings["queries"],
        features=settings["features"] if regime.lengthscale else 0,
    )


def target_of(rng: np.random.Generator, law: Callable[..., Target]) -> TrigonometricSeries:
    """A target of the regime's family."""
    target = law(seed=int(rng.integers(2**31)))
    assert isinstance(target, TrigonometricSeries)  # for the type checker
    return target


def own_target(draw: Draw, law: Callable[..., Target]) -> TrigonometricSeries:
    """The target of a batch."""
    return target_of(draw.rng(), law)


def halves(
    key: Array,
    shared: Shared,
    target: TrigonometricSeries,
    *,
    function: Callable[..., dict[str, Float[Array, "C H H"]]],
) -> dict[str, Float[Array, "half C H H"]]:
    """Products of the heads' errors for this target, twice, with draws of their own."""
    keys = jax.random.split(key, HALVES)
    own = shared._replace(target=target)
    return {"target_error_matrix": jax.vmap(lambda k: function(k, own, None)["error_matrix"])(keys)}


def frames_of(
    draw: Draw, shape: tuple[int, int, int, int], law: Callable[..., Target] | None
) -> tuple[np.ndarray, TrigonometricSeries | None]:
    """A batch's Haar-random frames (C, H, d, d_k), and its target where it has one of its own."""
    rng = draw.rng()
    frames = np.linalg.qr(rng.standard_normal(shape))[0]
    return frames, None if law is None else target_of(rng, law)


def over_frames(
    key: Array,
    shared: Shared,
    batch: tuple[Array, TrigonometricSeries | None],
    *,
    function: Callable[..., dict[str, Float[Array, "C H H"]]],
) -> dict[str, Array]:
    """Errors of ensembles of the batch's frames, twice, and mean squared cosines of their heads.

    ``frames_error`` (half, C) is the ensemble's error by draws of each half; ``frames_gram``
    (C, H, H) is ``tr F_h'F_g F_g'F_h/d_k``. The law of keys is that of the first configuration.
    """
    frames, target = batch
    root = jnp.broadcast_to(shared.root[0], (len(frames), *shared.root[0].shape))
    own = shared._replace(frames=frames, root=root)
    found = halves(key, own, shared.target if target is None else target, function=function)
    cross = jnp.einsum("chdp,cgdq->chgpq", frames, frames)
    gram = (cross**2).sum((-2, -1)) / frames.shape[-1]
    return {"frames_error": found["target_error_matrix"].mean((-2, -1)), "frames_gram": gram}


def shared(regime: Regime) -> Shared:
    """A regime's arrays, in the form that a replicate takes."""
    values, vectors = jnp.linalg.eigh(regime.covariance)
    root = (vectors * jnp.sqrt(jnp.maximum(values, 0.0))[:, None, :]) @ vectors.mT
    return Shared(
        jnp.asarray(regime.frames),
        root,
        regime.bandwidth,
        jnp.asarray(regime.scale * regime.seen),
        regime.target,
        regime.lengthscale or 1.0,
        regime.noise_sd,
    )


def replicate(
    key: Array, shared: Shared, batch: None, *, kernel: Kernel, n: int, queries: int, features: int
) -> dict[str, Float[Array, "C H H"]]:
    """Products of the heads' errors for one draw of target, queries and two sets of keys.

    With the label noise integrated out given the keys, ``e_h = Σ_i w_hi m(X_i) − m(x)`` and
    ``N_hg = σ² Σ_i w_hi w_gi``, averaged over queries::

        error_matrix  ½ (e e' of the first keys + e e' of the second) + noise
        bias_matrix   ½ (e of the first times e of the second, both ways)
        noise_matrix  mean of N over both

    All configurations share the draws, and the coordinates of the keys that the target depends on
    are the same in all of them. Weights and waves are in float32, products of errors in float64.

    Args:
        key: of all draws.
        shared: the problem.
        batch: nothing is shared by the replicates of a batch alone.
        kernel: of all heads.
        n: keys of a set.
        queries: Q.
        features: waves of a drawn target; 0 takes the one that is shared.
    """
    for_target, for_queries, for_keys = jax.random.split(with_quick_bits(key), 3)
    d = shared.root.shape[-1]
    target = shared.target
    if features:
        for_waves, for_phases = jax.random.split(for_target)
        target = TrigonometricSeries(
            jnp.full(features, jnp.sqrt(2.0 / features)),
            jax.random.normal(for_waves, (features, d)) / shared.lengthscale,
            jax.random.uniform(for_phases, (features,), maxval=2 * jnp.pi),
        )
    x = jax.random.normal(for_queries, (queries, d)) * shared.seen
    z = jax.random.normal(for_keys, (DESIGNS, n, d))
    at_keys = target_values(target, (z @ shared.root[0]).astype(jnp.float32))
    at_queries = target_values(target, x)

    def configuration(heads: tuple[Array, Array]) -> tuple[Array, Array]:
        frames, root = heads
        q = jnp.einsum("hdp,qd->phq", frames, x).astype(jnp.float32)[..., None]
        b = shared.bandwidth.astype(jnp.float32)[:, None, None]

        def answers(z: Array, values: Array) -> tuple[Array, Array]:
            k = jnp.einsum("hdp,nd->phn", frames, z @ root).astype(jnp.float32)[:, :, None]
            weights = jax.nn.softmax(kernel.log_value(q, k, b), axis=-1)
            flat = weights.reshape(weights.shape[0], -1)
            gram = flat @ flat.T / queries
            return (weights @ values).astype(jnp.float64), gram.astype(jnp.float64)

        values, grams = jax.vmap(answers)(z, at_keys)
        return values - at_queries, shared.noise_sd**2 * grams.mean(0)

    errors, noise = jax.vmap(configuration)((shared.frames, shared.root))
    own = jnp.einsum("cshq,csgq->chg", errors, errors) / (DESIGNS * queries)
    cross = jnp.einsum("chq,cgq->chg", errors[:, 0], errors[:, 1]) / queries
    values = (own + noise, (cross + cross.mT) / 2, noise)
    return dict(zip(OUTPUTS, values, strict=True))
