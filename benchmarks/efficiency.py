"""Statistical efficiency: what each device saves, and the time to 1 % Monte Carlo error.

A way to simulate needs ``(s/(0.01·|term|))²`` batches until the standard error of a term is 1 % of
it, s being the spread of one batch's unbiased estimate; the time is that of the slowest of
(bias², variance, covariance). Spreads are measured over :data:`BATCHES` batches: a ratio of two
variances has a relative standard error of about 2/√(BATCHES − 1).
"""

import jax
import numpy as np

from benchmarks import contestants as who
from benchmarks.machine import cpu_seconds, description, show
from benchmarks.problem import Work
from sims.problem import Task
from sims.simulation import estimate

BATCHES = 64
REPLICATES = 16
TERMS = ("squared_bias", "variance", "covariance")
SIGMAS = (0.5, 1.0, 2.0)


def spread(values: np.ndarray) -> float:
    """Standard deviation of a batch relative to the mean."""
    return float(values.std(ddof=1) / abs(values.mean()))


def antithetic(work: Work, seed: int, pairs: int = 256) -> dict[str, float]:
    """Variance reduction of antithetic designs (X, −X) at equal cost, for bias and signal variance.

    From the correlation of g and of (g − b)² between the two designs of a pair, both summed over
    heads and queries as the terms are; factor 1/(1 + correlation). Estimates from antithetic
    replicates stay unbiased if covariances are taken across pairs.
    """
    task, heads, queries = work.problem()
    keys = jax.random.split(jax.random.key(seed), pairs)
    q = np.einsum("hdp,qd->qhp", heads.frames, queries)

    def heads_of(x: np.ndarray) -> np.ndarray:
        k = np.einsum("hdp,nd->hnp", heads.frames, x)
        square = (q**2).sum(-1)[..., None] + (k**2).sum(-1) - 2 * np.einsum("qhp,hnp->qhn", q, k)
        w = np.exp(-0.5 * square)
        return (w @ np.asarray(task.target(x))) / w.sum(-1)

    designs = [np.asarray(task.design.sample(key, work.n, float)) for key in keys]
    g = np.array([[heads_of(x), heads_of(-x)] for x in designs])
    centred = g - g.mean((0, 1))
    means = 2 * (centred * (g.mean((0, 1)) - np.asarray(task.target(queries))[:, None]))
    square = {"squared_bias": means.mean((2, 3)), "signal variance": (centred**2).mean((2, 3))}
    return {name: 1 / (1 + float(np.corrcoef(pair.T)[0, 1])) for name, pair in square.items()}


def main(repeats: int = 3) -> None:
    """Print the tables."""
    work = Work(replicates=REPLICATES)
    task, heads, queries = work.problem()

    def run(sigma: float, **options):
        noisy = Task(task.design, task.target, sigma)
        return estimate(
            noisy,
            heads,
            work.n,
            queries,
            1,
            batches=BATCHES,
            replicates_per_batch=REPLICATES,
            **options,
        )

    few = 4
    calls = {
        "Rao–Blackwell": who.engine(work, "float32", 16, raw_labels=False),
        "control": who.engine(work, "float32", 16, raw_labels=False, control_variate=True),
        "NumPy": who.numpy_loop(work, "float32", few, pairs=False),
    }
    try:
        calls["KeOps"] = who.keops(work, "float32", few, pairs=False)
    except who.Missing as error:
        print(error)
    took = cpu_seconds(calls, repeats)
    per_batch = {name: took[name] / 16 for name in ("Rao–Blackwell", "control")}
    per_batch |= {name: took[name] * REPLICATES / few for name in calls if name not in per_batch}
    factors, times = [], []
    for sigma in SIGMAS:
        plain, control = run(sigma), run(sigma, control_variate=True)
        spreads = {
            "raw": {name: spread(plain[f"raw_{name}"].values) for name in TERMS},
            "Rao–Blackwell": {name: spread(plain[name].values) for name in TERMS},
            "control": {name: spread(control[name].values) for name in TERMS},
        }
        for name in TERMS:
            raw, blackwell, last = (spreads[way][name] ** 2 for way in spreads)
            factors.append(
                [
                    f"{sigma:g}",
                    name,
                    f"{raw / blackwell:.3g}",
                    f"{blackwell / last:.3g}",
                    f"{raw / last:.3g}",
                ]
            )
        seconds = {}
        for way in per_batch:
            of = spreads["raw" if way in ("NumPy", "KeOps") else way]
            seconds[way] = max((value / 0.01) ** 2 for value in of.values()) * per_batch[way]
        best = seconds["control"]
        row = [f"{sigma:g}"]
        for way in ("NumPy", "KeOps", "Rao–Blackwell", "control"):
            if way in seconds:
                row.append(f"{seconds[way]:.3g} ({seconds[way] / best:.3g}×)")
        times.append(row)
    note = (
        f"n = {work.n}, {work.queries} queries, H = {work.heads}, {REPLICATES} replicates a batch."
    )
    show(
        "Variance of one batch, divided by that after",
        ("σ", "term", "Rao–Blackwell", "control variate on top", "both"),
        factors,
        note,
    )
    heads_ = ["σ", *(way for way in ("NumPy", "KeOps", "Rao–Blackwell", "control") if way in calls)]
    show(
        "CPU seconds to 1 % MCSE of bias², variance and covariance (× the last)",
        heads_,
        times,
        description(),
    )
    small = Work(n=256, queries=16)
    gains = antithetic(small, 3)
    rows = [[name, f"{value:.2f}"] for name, value in gains.items()]
    show(
        "Antithetic designs (X, −X): variance divided by",
        ("term", "factor"),
        rows,
        "n = 256, 16 queries, 256 pairs.",
    )
    rows = [[name, f"{value:.1f}"] for name, value in common_numbers(work).items()]
    show(
        "Common random numbers: variance of a difference, divided by",
        ("term", "factor"),
        rows,
        "Bandwidth 1 against 1.05: shared draws against separate ones.",
    )


def common_numbers(work: Work) -> dict[str, float]:
    """Variance of a difference of two bandwidths: separate draws over shared ones."""
    task, heads, queries = work.problem()
    wider = type(heads)(heads.frames, heads.kernel, 1.05 * heads.bandwidth)
    run = {"batches": BATCHES, "replicates_per_batch": REPLICATES, "raw_labels": False}
    one, same, other = (
        estimate(task, which, work.n, queries, seed, **run)
        for which, seed in ((heads, 0), (wider, 0), (wider, 1))
    )
    names = ("squared_bias", "variance", "covariance", "mse")
    return {
        name: float((one[name].values - other[name].values).var())
        / float((one[name].values - same[name].values).var())
        for name in names
    }
