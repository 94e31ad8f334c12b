"""Simulation of a problem: every set of heads, at two temperatures, as given and in law."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import ortho_group

from sims.base.estimates import mcse
from sims.montecarlo import HostBatches
from sims.montecarlo.draws import Draw
from sims.simulation import estimate

from . import decomposition
from .moments import Sums
from .outcomes import FIRST_ROUND, LOOKS, is_decided
from .problems import ROTATIONS, Problem, sums_of
from .sets import COMMON, OWN_BEST, SECOND, SETS

DIMS = ("reading", "set", "temperature")
COORDS = {"reading": ["given", "in law"], "temperature": ["common", "own best"]}
TERMS = ("bias", "variance", "head_bias", "head_variance", "noise", "head_noise", "half_error")
"""Terms of the ensemble and of its mean head; the error of the first half of the heads."""

PRECISE = 0.01
"""Monte Carlo error at fixed queries, as a share of error and variance, at which rounds suffice."""
REPLICATES, ROUNDS, MOST_ROUNDS = 64, 16, 1024
"""Replicates of a round, rounds to begin with, and at most."""


class HouseSampler(HostBatches):
    """Batches of a problem, which stop at a declared look once all outcomes are decided."""

    def precise(self, arrays: Mapping[str, np.ndarray], rel_mcse: float, negligible: float) -> bool:
        """True at a declared look where every outcome is decided."""
        count = len(arrays["bias"])
        return count in LOOKS and is_decided(arrays, self.constants.fits)


def sampler(problem: Problem) -> HouseSampler:
    """The sampler of a problem."""
    dims = dict.fromkeys(TERMS, DIMS)
    return HouseSampler(batch, constants=problem, dims=dims, coords=COORDS, partial=dims)


def batch(draw: Draw, replicates: int, problem: Problem) -> dict[str, np.ndarray]:
    """Unbiased estimates of every term from replicates on common queries.

    Read in law, all sets are turned by common uniform rotations; as given they stay. After the
    first round only what a look needs is computed: every set but the second Haar one, at its own
    best temperature. The rest is NaN.
    """
    first = draw.batch < FIRST_ROUND
    sets = np.arange(SETS) if first else np.delete(np.arange(SETS), SECOND)
    temperatures = slice(COMMON if first else OWN_BEST, None)
    rng = draw.rng()
    keys = problem.law.keys(rng, replicates, problem.n)
    count = ROTATIONS[problem.n]
    rotations = ortho_group.rvs(problem.law.dimension, size=count, random_state=rng)
    rotations = rotations.reshape(count, 1, 1, *rotations.shape[-2:])
    frames = []
    for array in (problem.query_frames[sets], problem.key_frames[sets]):
        given = np.broadcast_to(array, (count, *array.shape))
        frames.append(np.concatenate([given, rotations @ array], axis=1))
    bandwidth = problem.bandwidth[sets, temperatures]
    queries = problem.queries(draw.batch)
    sums = sums_of(
        problem.target,
        keys,
        queries,
        frames,
        np.concatenate([bandwidth, bandwidth]),
        problem.fields["kernel"],
    )
    terms = terms_of(sums, problem.noise_sd)
    outputs: dict[str, np.ndarray] = {}
    for name in TERMS:
        computed = terms[name].mean(-1).reshape(2, *bandwidth.shape[:2])
        outputs[name] = np.full((2, SETS, 2), np.nan, np.float32)
        outputs[name][:, sets, temperatures] = computed
    return outputs


def at_fixed_queries(problem: Problem, seed: int) -> xr.Dataset:
    """Terms of the first Haar set at the fixed queries, ``fixed_NAME`` (round).

    Rounds double until the Monte Carlo errors of error and variance are :data:`PRECISE` of them.
    """
    task, heads, n, queries = decomposition.case(problem, filled=True)
    names = decomposition.TERMS
    options: dict[str, Any] = {
        "keep_queries": False,
        "replicates_per_batch": REPLICATES,
        "stream": (problem.number, 1),
    }
    found = None
    rounds = ROUNDS
    while True:
        found = estimate(task, heads, n, queries, seed, batches=rounds, resume=found, **options)
        sizes = [found[names[name]].values for name in ("mse", "variance")]
        if rounds >= MOST_ROUNDS or all(mcse(part) <= PRECISE * part.mean() for part in sizes):
            break
        rounds *= 2
    terms = {f"fixed_{name}": ("round", found[term].values) for name, term in names.items()}
    return xr.Dataset(terms)


def terms_of(sums: Sums, noise_sd: float) -> dict[str, np.ndarray]:
    """The terms of :data:`TERMS` by set, temperature and query, unbiased at any R ≥ 2."""
    deviation = sums.deviation
    replicates = len(deviation)
    variance = noise_sd**2
    noise = variance * sums.noise.mean(0)
    ensemble_noise = variance * sums.ensemble_noise.mean(0)
    ensemble = deviation.mean(3)
    half = deviation[:, :, :, : deviation.shape[3] // 2].mean(3)
    spread = ensemble.var(0, ddof=1)
    head_spread = deviation.var(0, ddof=1)
    head_bias = deviation.mean(0) ** 2 - head_spread / replicates
    return {
        "bias": ensemble.mean(0) ** 2 - spread / replicates,
        "variance": spread + ensemble_noise,
        "head_bias": head_bias.mean(2),
        "head_variance": head_spread.mean(2) + noise,
        "noise": ensemble_noise,
        "head_noise": noise,
        "half_error": (half**2).mean(0) + variance * sums.half_noise.mean(0),
    }
