"""Statistical efficiency: by how much each device divides the variance of one batch.

Variances are of :data:`BATCHES` batches: a ratio of two of them has a relative standard error of
about 2/√(BATCHES − 1).
"""

from dataclasses import replace

import xarray as xr

from benchmarks.contestants import engine
from benchmarks.machine import cpu_seconds, description, show
from benchmarks.problem import Work

BATCHES = 64
TERMS = ("squared_bias", "variance", "covariance")
SIGMAS = (0.5, 1.0, 2.0)


def spread(values: xr.DataArray) -> float:
    """Variance of a batch relative to the squared mean."""
    return float(values.var(ddof=1) / values.mean() ** 2)


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


def main(repeats: int = 3) -> None:
    """Print the tables."""
    work = Work(replicates=16)
    rows = []
    for sigma in SIGMAS:
        noisy = replace(work, noise_sd=sigma)
        plain = engine(noisy, "float32", BATCHES)(1)
        control = engine(noisy, "float32", BATCHES, control_variate=True)(1)
        for name in TERMS:
            raw = spread(plain[f"raw_{name}"])
            blackwell = spread(plain[name])
            last = spread(control[name])
            factors = (raw / blackwell, blackwell / last, raw / last)
            rows.append([f"{sigma:g}", name, *(f"{factor:.3g}" for factor in factors)])
    calls = {
        "without": engine(work, "float32", 16, raw_labels=False),
        "with": engine(work, "float32", 16, raw_labels=False, control_variate=True),
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
