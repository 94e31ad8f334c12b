"""Sequential Monte Carlo tests with a stated false-alarm rate.

After Gandy & Scott (2020), "Unit testing for MCMC and other Monte Carlo methods", arXiv 2001.06465.
A correct simulation fails a test with probability at most α (1e-5), yet a test usually costs one
small sample. With k looks at fresh samples, β = α/k and γ = β^(1/k), look i = 1 … k has p-value q
and

```
q ≤ β_i            fails,     β_1 = β, β_{i+1} = β_i / γ
q > γ + β_i        passes
otherwise          looks again; the second and later samples are Δ times as large as the first
```

The last look passes unless it fails. Since P(q ≤ u) ≤ u, the chance of a false alarm is at most
β + γ(β/γ + γ(β/γ² + …)) = kβ = α. With α = 1e-5 and k = 5, γ = 0.072: 93% of correct simulations
pass at the first look, and a wrong one is looked at again with Δ times the sample.

q is Bonferroni's over all numbers compared: Student's t of the means of iid batches, two-sided. So
the rate holds as far as batch estimates are normal: give a batch many replicates, and compare
quantities that are means (biases, not their squares).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

ALPHA, LOOKS, GROWTH = 1e-5, 5, 4


@dataclass(frozen=True)
class Outcome:
    """Whether it passed, the p-values of the looks, and the numbers at the last look."""

    passed: bool
    p_values: tuple[float, ...]
    worst: int
    estimate: float
    error: float


def p_value(estimates: Any, expected: Any, tolerance: Any = 0.0) -> tuple[float, int, Any, Any]:
    """Bonferroni p-value of ``|E estimate − expected| ≤ tolerance`` for every number.

    Args:
        estimates: iid batches (B, …).
        expected: (…).
        tolerance: (…) ≥ 0, how far the expected value may be from the truth.

    Returns:
        p, the index of the worst of the flattened numbers, all means and all errors.

    Raises:
        ValueError: shapes differ, or a number is not finite.
    """
    estimates = np.asarray(estimates, float)
    batches = len(estimates)
    flat = estimates.reshape(batches, -1)
    expected = np.asarray(expected, float)
    if expected.shape != estimates.shape[1:]:
        raise ValueError(f"estimates {estimates.shape[1:]}, expected {expected.shape}")
    gap = np.abs(flat.mean(0) - expected.ravel())
    error = flat.std(0, ddof=1) / np.sqrt(batches)
    excess = np.maximum(gap - np.broadcast_to(tolerance, expected.shape).ravel(), 0.0)
    if not np.isfinite(excess).all():
        raise ValueError("a mean or an expected value is not finite")
    # A number without scatter: equal to rounding, or wrong.
    rounding = 1e-12 * np.abs(expected).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(excess <= rounding, 0.0, excess / error)
    each = 2 * stdtr(batches - 1, -t)
    worst = int(np.argmin(each))
    return min(1.0, float(each[worst]) * each.size), worst, flat.mean(0), error


def sequential_test(
    draw: Callable[[int, int], Any],
    expected: Any,
    *,
    tolerance: Any = 0.0,
    batches: int = 32,
    alpha: float = ALPHA,
    looks: int = LOOKS,
    growth: int = GROWTH,
) -> Outcome:
    """Test ``E draw = expected`` for all numbers at once.

    Args:
        draw: ``(seed, batches) -> (batches, …)``, iid unbiased estimates; seeds 0, 1, … give
            independent samples.
        expected: (…).
        tolerance: (…) allowed deviation, such as the remainder of first-order theory.
        batches: in the first sample.
        alpha: false-alarm rate.
        looks: k.
        growth: Δ.
    """
    low = alpha / looks
    gamma = low ** (1 / looks)
    history: list[float] = []
    for look in range(looks):
        count = batches if look == 0 else growth * batches
        p, worst, mean, error = p_value(draw(look, count), expected, tolerance)
        history.append(p)
        if p <= low or p > gamma + low or look == looks - 1:
            break
        low /= gamma
    return Outcome(p > low, tuple(history), worst, float(mean[worst]), float(error[worst]))
