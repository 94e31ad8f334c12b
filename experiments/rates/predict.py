"""First-order moments of a head on lacunary targets over bandwidths; every n follows from them."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sims.problem import TARGETS, TrigonometricSeries, gaussian_queries
from sims.study.experiment import Experiment
from sims.theory import Tilt, tilted_mean, tilted_product

DIMS = ("bandwidth", "target", "beta")
PARTS = ("limit_bias", "cross_bias", "ratio_bias", "variance", "overlap")

Numbers = float | np.ndarray | xr.DataArray

AT_ONCE = 16
"""Targets whose matrices are in memory together."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """A dataset a head width, and ``ensemble``.

    With ``MSE(n) = limit_bias + (cross_bias + variance)/n + ratio_bias/n²`` (means over queries and
    a group's targets), ``overlap`` the mean of r_hh, so that ``n_eff = n/overlap``, and
    ``nuisance`` the r_hh of one coordinate with the query at 0. ``mse``, the ``variance_share`` in
    it and ``n_eff`` (of the ensemble: ``mse_of_heads``, …) are those of the simulated problems,
    whose targets are those of the first ``shared_groups`` groups.
    """
    settings = experiment.settings
    simulated, betas, n = (settings[k] for k in ("simulated", "betas", "sizes"))
    ensemble = simulated["ensemble"]
    dense = np.geomspace(*(settings["bandwidths"][k] for k in ("from", "to", "count")))
    amplitudes = np.stack(
        [TARGETS["holder"](1, beta=beta, levels=settings["levels"]).amplitude for beta in betas]
    )
    size = xr.DataArray(np.array(n, float), {"size": np.array(n, float)}, "size")
    shared = min(simulated["targets"], settings["targets"])
    laws = {}
    for width in settings["widths"]:
        single, joint = (
            np.array(table)[:, : len(n)]
            for table in (simulated["bandwidths"][width], ensemble["bandwidths"])
        )
        every = np.concatenate([dense, single.ravel(), joint.ravel()])
        series, queries = problem(settings, width)
        values = moments(series, amplitudes, queries, every, width, settings["noise_sd"])
        arrays = {k: (DIMS, np.asarray(v)) for k, v in zip(PARTS, values, strict=True)}
        parts = xr.Dataset(arrays, {"beta": betas})
        grouped = parts.coarsen(target=settings["targets"] // settings["groups"]).mean()
        law = grouped.isel(bandwidth=slice(len(dense))).rename(target="group")
        mean = parts.isel(target=slice(shared)).mean("target")
        rows = len(dense) + np.arange(single.size).reshape(single.shape)
        own = mean.isel(bandwidth=(("beta", "size"), rows), beta=("beta", range(len(betas))))
        laws[f"width {width}"] = (
            law.assign_coords(bandwidth=dense, size=size)
            .assign(
                nuisance=("bandwidth", nuisance(dense)),
                mse=error(own, size, 1, 1.0),
                variance_share=variance(own, size, 1, 1.0) / error(own, size, 1, 1.0),
                n_eff=(size / own["overlap"]).transpose(..., "size"),
            )
            .assign_attrs(
                shared_groups=shared * settings["groups"] // settings["targets"],
                targets=settings["targets"],
            )
        )
        if width == ensemble["relevant"]:
            rows = len(dense) + single.size + np.arange(joint.size).reshape(joint.shape)
            pooled = mean.sel(beta=ensemble["beta"], drop=True)
            pooled = pooled.isel(bandwidth=(("heads", "size"), rows))
            heads = xr.DataArray(ensemble["heads"], {"heads": ensemble["heads"]}, "heads")
            extra = xr.DataArray(
                nuisance(joint) ** (ensemble["width"] - width), dims=("heads", "size")
            )
            together = xr.Dataset(
                {
                    "mse_of_heads": error(pooled, size, heads, extra),
                    "variance_share_of_heads": variance(pooled, size, heads, extra)
                    / error(pooled, size, heads, extra),
                    "n_eff_of_heads": (size / (pooled["overlap"] * extra)).transpose(..., "size"),
                }
            )
    return laws | {"ensemble": together}


def problem(settings: Mapping[str, Any], width: int) -> tuple[TrigonometricSeries, np.ndarray]:
    """The targets, stacked, and the queries, at the largest width: one compiled shape.

    What is added are coordinates that no head sees and nothing depends on.
    """
    pad = (0, max(settings["widths"]) - width)
    series = [
        TARGETS["holder"](width, seed=seed, levels=settings["levels"])
        for seed in range(settings["targets"])
    ]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *series)
    frequency = np.pad(stacked.frequency, ((0, 0), (0, 0), pad))
    queries = np.pad(gaussian_queries(width, **settings["queries"]), ((0, 0), pad))
    return eqx.tree_at(lambda s: s.frequency, stacked, frequency), queries


def error(
    parts: Mapping[str, np.ndarray] | xr.Dataset, n: Numbers, heads: Numbers, own: Numbers
) -> Numbers:
    """MSE of H averaged heads, each with nuisance coordinates whose overlap is ``own``.

    The nuisance coordinates are independent of all else, so they multiply a head's overlap, and
    two heads' overlap, of independent nuisances, by 1.
    """
    bias = parts["limit_bias"] + own * parts["cross_bias"] / n + own**2 * parts["ratio_bias"] / n**2
    return bias + variance(parts, n, heads, own)


def variance(
    parts: Mapping[str, np.ndarray] | xr.Dataset, n: Numbers, heads: Numbers, own: Numbers
) -> Numbers:
    """What variance is of :func:`error`."""
    return (own / heads + 1 - 1 / heads) * parts["variance"] / n


def nuisance(bandwidth: float | np.ndarray) -> np.ndarray:
    """``E K²/(E K)²`` of one standard normal coordinate, query at 0: ``(1+b²)/(b√(2+b²))``."""
    return (1 + bandwidth**2) / (bandwidth * np.sqrt(2 + bandwidth**2))


def isotropic_tilt(
    count: int, bandwidth: Array, queries: Float[Array, "Q d"], width: int | Array
) -> Tilt:
    """N(0, I) tilted by a head's kernel to the power ``count``; as ``gaussian_tilt``.

    In closed form, because for b far below 1 the covariance ``b²/(b² + count)`` is lost as the
    difference of two matrices: relative error 10⁻¹⁶/b².
    """
    shrink = bandwidth**2 + count
    return Tilt(
        -0.5 * width * jnp.log1p(count / bandwidth**2)
        - 0.5 * count * jnp.sum(queries**2, axis=1) / shrink,
        queries * (count / shrink),
        jnp.eye(queries.shape[1]) * (bandwidth**2 / shrink),
    )


@jax.jit
def moments(
    series: TrigonometricSeries,
    amplitudes: Array,
    queries: Array,
    bandwidths: Array,
    width: int | Array,
    noise_sd: float | Array,
) -> tuple[Float[Array, "B T beta"], ...]:
    """The parts named in ``PARTS``, each (bandwidth, target, beta), averaged over queries.

    Args:
        series: targets whose arrays are stacked; their amplitudes are not used.
        amplitudes: (beta, J).
        queries: (Q, d).
        bandwidths: (B,).
        width: number of coordinates that the head sees; the others of d are padding.
        noise_sd: σ.
    """

    def at(bandwidth: Array) -> tuple[Array, ...]:
        once, twice = (isotropic_tilt(c, bandwidth, queries, width) for c in (1, 2))
        overlap = jnp.exp(twice.log_mass - 2 * once.log_mass)

        def one(shape: TrigonometricSeries, amplitude: Array) -> tuple[Array, ...]:
            target = eqx.tree_at(lambda s: s.amplitude, shape, amplitude)
            limit = tilted_mean(target, once)
            bias = limit - target(queries)
            ratio = -overlap * (tilted_mean(target, twice) - limit)
            signal = tilted_product(target, twice, limit, limit)
            variance = overlap * (signal + noise_sd**2)
            parts = (bias**2, 2 * bias * ratio, ratio**2, variance, overlap)
            return tuple(jnp.mean(part) for part in parts)

        # What does not depend on the amplitudes is computed once for all of them.
        every = jax.vmap(one, (None, 0))
        return jax.lax.map(lambda shape: every(shape, amplitudes), series, batch_size=AT_ONCE)

    return jax.lax.map(at, jnp.asarray(bandwidths))
