"""Simulation of a problem: its sets of heads at two temperatures, as drawn and equally good."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from sims.base.estimates import mcse
from sims.montecarlo import HostBatches
from sims.montecarlo.draws import Draw
from sims.simulation import estimate

from . import decomposition
from .frames import draw_rotations
from .moments import Sums, sums_of
from .outcomes import FIRST_ROUND, LOOKS, is_decided
from .pilot import ROTATIONS
from .problems import Problem
from .sets import COMMON, DRAWN, EQUAL, LADDER, OWN_BEST, READINGS, SETS

DIMS = ("reading", "set", "temperature")
COORDS = {"reading": [*READINGS]}
TERMS = ("bias", "variance", "head_bias", "head_variance", "noise", "head_noise")
"""Terms of the ensemble and of its mean head."""

PRECISE = 0.01
"""Monte Carlo error at fixed queries, as a share of error and variance, at which rounds suffice."""
REPLICATES, ROUNDS = 64, 16
"""Replicates of a round, and rounds to begin with."""
MOST_KEYS = 2**24
"""Keys that are drawn at most: those of Student's t take seven seconds a million."""


class HouseSampler(HostBatches):
    """Batches of a problem, which stop at a declared look once all outcomes are decided."""

    def precise(self, arrays: Mapping[str, np.ndarray], rel_mcse: float, negligible: float) -> bool:
        """True at a declared look where every outcome that is looked at again is decided."""
        return len(arrays["bias"]) in LOOKS and is_decided(arrays)


def sampler(problem: Problem) -> HouseSampler:
    """The sampler of a problem."""
    dims = dict.fromkeys(TERMS, DIMS) | {"gain_error": ("set",)}
    return HouseSampler(batch, constants=problem, dims=dims, coords=COORDS, partial=dims)


def batch(draw: Draw, replicates: int, problem: Problem) -> dict[str, np.ndarray]:
    """Unbiased estimates of every term from replicates on common queries.

    Equally good sets are turned by common uniform rotations. After the first round only what a look
    needs is computed: the ladder as drawn, at own best temperatures. The rest is NaN.
    """
    first = draw.batch < FIRST_ROUND
    sets = np.arange(SETS if first else len(LADDER))
    temperatures = np.array([COMMON, OWN_BEST] if first else [OWN_BEST])
    rng = draw.rng()
    keys = problem.law.keys(rng, replicates, problem.n)
    count = ROTATIONS[problem.n]
    rotations = draw_rotations(rng, count, problem.law.dimension)
    frames = []
    for array in (problem.query_frames[sets], problem.key_frames[sets]):
        as_drawn = np.broadcast_to(array, (count, *array.shape))
        turned = rotations @ problem.key_frames[sets]
        frames.append(np.concatenate([as_drawn, turned], axis=1) if first else as_drawn)
    bandwidth = problem.bandwidth[sets][:, temperatures]
    if first:
        bandwidth = np.concatenate([bandwidth, problem.equal_bandwidth])
    queries = problem.queries(draw.batch)
    sums = sums_of(problem.target, keys, queries, frames, bandwidth, problem.fields["kernel"])
    terms = terms_of(sums, problem.noise_sd)
    readings = np.array([DRAWN, EQUAL] if first else [DRAWN])
    cells = np.ix_(readings, sets, temperatures)
    outputs: dict[str, np.ndarray] = {}
    for name in TERMS:
        outputs[name] = np.full((len(READINGS), SETS, 2), np.nan, np.float32)
        outputs[name][cells] = terms[name].mean(-1).reshape(-1, len(sets), len(temperatures))
    shrunk = problem.mean - problem.target.values(queries)
    gain_error = np.full(SETS, np.nan, np.float32)
    gain_error[sets] = gain_errors(sums, problem.gain[sets], shrunk, problem.noise_sd)
    return outputs | {"gain_error": gain_error}


def at_fixed_queries(problem: Problem, seed: int) -> xr.Dataset:
    """Terms of the ladder's Haar set at the fixed queries, ``fixed_NAME`` (round).

    Rounds double until the Monte Carlo errors of error and variance are :data:`PRECISE` of them, or
    :data:`MOST_KEYS` are drawn.
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
        if all(mcse(part) <= PRECISE * part.mean() for part in sizes):
            break
        if 2 * rounds * REPLICATES * n > MOST_KEYS:
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
    }


def gain_errors(sums: Sums, gain: np.ndarray, shrunk: np.ndarray, noise_sd: float) -> np.ndarray:
    """Mean squared error of c + g·(average − c) of each set as drawn at its last temperature, (S,).

    Args:
        sums: of the sets as drawn first.
        gain: g, (S,).
        shrunk: c − m at the queries, (Q,).
        noise_sd: σ.
    """
    average = sums.deviation[:, : len(gain), -1].mean(2)
    deviation = gain[:, None] * average + (1 - gain[:, None]) * shrunk
    noise = (gain * noise_sd) ** 2 * sums.ensemble_noise[:, : len(gain), -1].mean((0, 2))
    return np.asarray((deviation**2).mean((0, 2)) + noise)
