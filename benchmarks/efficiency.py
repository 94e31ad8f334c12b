"""Statistical efficiency: by how much each device divides the variance of one batch, and what exact
theory costs beside simulation to the same error.

Variances are of :data:`BATCHES` batches, 16 at 10⁶ keys: a ratio of two of them has a relative
standard error of about 2/√(BATCHES − 1).
"""

from dataclasses import replace

import jax
import numpy as np
import xarray as xr

from benchmarks.contestants import engine
from benchmarks.machine import cpu_seconds, description, show
from benchmarks.problem import Work
from sims.base import terms
from sims.simulation import draw, nw_weights
from sims.theory import predict

BATCHES = 64
TERMS = ("squared_bias", "variance", "covariance")
SIGMAS = (0.5, 1.0, 2.0)
ACCURACY = 0.02
"""Asked of exact theory, of the MSE at every query."""


def spread(values: xr.DataArray) -> float:
    """Variance of a batch relative to the squared mean."""
    return float(values.var(ddof=1) / values.mean() ** 2)


def with_labels(work: Work) -> xr.Dataset:
    """Terms of batches with drawn labels, of which the variance counts as noise and signal."""
    task, heads, queries = work.problem()

    @jax.jit
    def deviations(key: jax.Array) -> jax.Array:
        x, unit = draw(task, key, work.n)
        weights = jax.lax.map(lambda query: nw_weights(heads, query, x), queries)
        labels = task.target(x) + task.noise_sd * unit
        return weights @ labels - task.target(queries)[:, None]

    keys = jax.random.split(jax.random.key(2), BATCHES * work.replicates)
    values = jax.lax.map(deviations, keys)
    values = np.reshape(values, (BATCHES, work.replicates, *values.shape[1:]))
    bias = values.mean(1)
    gaps = values - bias[:, None]
    covariance = np.einsum("brqh,brqg->bqhg", gaps, gaps) / (work.replicates - 1)
    product = bias[..., None] * bias[..., None, :] - covariance / work.replicates
    return terms.assemble(bias, product, covariance, 0 * covariance)


def common_numbers(work: Work) -> dict[str, float]:
    """Variance of a difference of two bandwidths: separate draws over shared ones."""
    wider = replace(work, bandwidth=1.05)
    one = engine(work, "float32", BATCHES)(0)
    same = engine(wider, "float32", BATCHES)(0)
    other = engine(wider, "float32", BATCHES)(1)
    gains = {}
    for name in (*TERMS, "mse"):
        shared = (one[name] - same[name]).var()
        gains[name] = float((one[name] - other[name]).var() / shared)
    return gains


def beside_theory(repeats: int) -> list[list[str]]:
    """CPU seconds of exact theory, and of simulation until the MSE has the same standard error."""
    rows = []
    for heads in (4, 8):
        for n in (64, 4096, 2**20):
            work = Work(heads=heads, n=n, queries=16, replicates=max(2, 2**14 // n), bandwidth=0.7)
            task, frames, queries = work.problem()

            def theory(seed: int, problem: tuple = (task, frames, n, queries)) -> xr.Dataset:
                del seed
                return predict(*problem, order="exact", rtol=ACCURACY)

            count = min(BATCHES, 2**24 // n)
            batches = engine(work, "float32", count)
            took = cpu_seconds({"theory": theory, "simulation": batches}, repeats)
            exact = theory(0)
            # Half a 95 % interval of Student's t with 7 degrees of freedom.
            share = float(exact["mse_error"] / exact["mse"]) / 2.36
            # One batch at least, which may be more than enough.
            needed = max(1, spread(batches(0)["mse"]) / share**2)
            numbers = (took["theory"], share, needed * took["simulation"] / count)
            rows.append([str(heads), str(n), *(f"{number:.3g}" for number in numbers)])
    return rows


def main(repeats: int = 3) -> None:
    """Print the tables."""
    titles = ("H", "n", "theory", "standard error / MSE", "simulation to that error")
    note = f"16 queries, d_k = 4, d = 32, {ACCURACY:.0%} of the MSE at every query."
    show("CPU seconds of exact theory", titles, beside_theory(repeats), note)
    work = Work(replicates=16)
    rows = []
    for sigma in SIGMAS:
        noisy = replace(work, noise_sd=sigma)
        labelled = with_labels(noisy)
        plain = engine(noisy, "float32", BATCHES)(1)
        control = engine(noisy, "float32", BATCHES, control_variate=True)(1)
        for name in TERMS:
            raw = spread(labelled[name])
            blackwell = spread(plain[name])
            last = spread(control[name])
            factors = (raw / blackwell, blackwell / last, raw / last)
            rows.append([f"{sigma:g}", name, *(f"{factor:.3g}" for factor in factors)])
    calls = {
        "without": engine(work, "float32", 16),
        "with": engine(work, "float32", 16, control_variate=True),
    }
    took = cpu_seconds(calls, repeats)
    size = f"n = {work.n}, {work.queries} queries, H = {work.heads}, {work.replicates} replicates"
    note = f"{size}. Time with a control variate: {took['with'] / took['without']:.2f} times. "
    columns = ("σ", "term", "Rao–Blackwell", "control variate on top", "both")
    show("Variance of one batch, divided by that after", columns, rows, note + description())
    rows = [[name, f"{value:.1f}"] for name, value in common_numbers(work).items()]
    note = "Bandwidth 1 against 1.05: shared draws against separate ones."
    title = "Common random numbers: variance of a difference, divided by"
    show(title, ("term", "factor"), rows, note)
