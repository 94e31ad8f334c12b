"""Coverage of theories: checks before a computation, and cautions after it."""

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Bool
from numpy.typing import ArrayLike

from sims.base.errors import InputError, Uncovered
from sims.base.terms import PAIRS, SCALARS, phrases
from sims.problem import (
    CustomDesign,
    EmpiricalDesign,
    GaussianDesign,
    Heads,
    Kernel,
    StudentDesign,
    Task,
    TrigonometricSeries,
)
from sims.problem.design_laws import ImageDesign
from sims.weights import SCORES, WeightRule
from sims.weights.entmax import Entmax

FEW_KEYS = 50
"""Keys below which first-order theory is rough: its relative error is of order
1/n_eff + 1/n_third."""
WIDEST_HEAD = 2
"""Head dimension up to which order auto computes exact theory."""
MOST_ENTRIES = 1200
"""Numbers of (query, head, head) up to which it does, a minute on two cores, of Gaussian designs
and series."""
MOST_SAMPLED = 24
"""The same limit for other designs and targets."""
LEAST_PERCENT = 0.005
"""Accuracy from which points where kernels reach serve any problem."""
MOST_PERCENT = 4000
"""The same limit where that accuracy suffices."""
FEW_ROWS = 2**13
"""Rows of a table from which the limit falls like their number."""
LEAST_FREEDOM = 0.5
"""Degrees of freedom of Student's t from which its strata of scale are fine enough."""
LEAST_POWER = 1.0
"""Least power ν of α-entmax with theory: below, the kernel's derivative has no mean square."""
MOST_POWER = 50.0
"""Largest power ν of α-entmax with theory."""
FAR, FARTHER = 1e3, 2e3
"""Lengths of keys between which a kernel's growth is looked at, in units of the bandwidth."""
STEEP = 100.0
"""Growth of log K between the two from which K counts as exponential; a power of the length ν would
make it ν log 2."""


def series_of(task: Task, theory: str) -> TrigonometricSeries:
    """The target, if it is a trigonometric series; only these have closed forms.

    Args:
        task: task with the target.
        theory: name of the theory, for the error message.

    Raises:
        Uncovered: the target is another function.
    """
    if isinstance(task.target, TrigonometricSeries):
        return task.target
    allowed = f"a trigonometric series ({theory}); any function by order exact, with kernels"
    raise Uncovered("target", type(task.target).__name__, allowed)


def check_exact(task: Task, heads: Heads) -> None:
    """Raise Uncovered if exact theory does not cover a problem, without computing anything.

    Raises:
        Uncovered: only the sampler of the design is known, keys depend on one another, a
            weight rule or its target has no closed forms, Student's t has tails beyond its strata,
            or E K is infinite and the kernel is not one of the score ⟨q, k⟩ alone (a kernel that
            grows exponentially in the key under a design without exponential moments).
    """
    design = task.design
    if not isinstance(heads.rule, Kernel):
        check_radii(task, heads)
        return
    if isinstance(design, CustomDesign):
        if design.log_density is None:
            allowed = "one with a log_density (exact)"
            raise Uncovered("design", type(design).__name__, allowed)
    elif not isinstance(design, ImageDesign):
        allowed = "a design of iid keys (order exact)"
        raise Uncovered("design", type(design).__name__, allowed)
    if isinstance(design, StudentDesign) and not float(design.freedom) >= LEAST_FREEDOM:
        raise Uncovered("design.freedom", float(design.freedom), f"{LEAST_FREEDOM:g} or more")
    if not (heads.rule.around == "line" or has_mean(task, heads)):
        allowed = f"one that is bounded: E K is infinite under {type(design).__name__}"
        raise Uncovered("heads.kernel", heads.rule.name, allowed)


def has_mean(task: Task, heads: Heads) -> bool:
    """False if E K is infinite."""
    if task.design.EXPONENTIAL:
        return True
    axis = jnp.eye(heads.width)[0]
    near = float(heads.kernel.log_value(axis, FAR * axis, jnp.ones(())))
    far = float(heads.kernel.log_value(axis, FARTHER * axis, jnp.ones(())))
    return not far - near > STEEP  # a compact kernel's are not numbers


def check_radii(task: Task, heads: Heads) -> Entmax:
    """Weights of heads whose radius the sample sets.

    Raises:
        Uncovered: theory does not cover the rule, the design, the target or the width.
    """
    rule = heads.rule
    assert isinstance(rule, WeightRule)  # for the type checker; see sims.theory
    weights = rule.weights
    if not (isinstance(weights, Entmax) and rule.scores is SCORES["distance"]):
        allowed = "a kernel, or entmax or sparsemax with scores: distance"
        got = f"weight rule {rule.name}"
        raise Uncovered("heads.kernel", got, f"{allowed} (theory: {{order: none}})")
    if not LEAST_POWER <= weights.nu <= MOST_POWER:
        allowed = f"{LEAST_POWER:g} to {MOST_POWER:g} (theory)"
        raise Uncovered("heads.kernel.nu", weights.nu, allowed)
    if heads.width > 2:
        raise Uncovered("heads.width", heads.width, "1 or 2 (theory of adaptive radii)")
    if not isinstance(task.design, GaussianDesign):
        raise Uncovered("design", type(task.design).__name__, "Gaussian (theory of adaptive radii)")
    series_of(task, "adaptive radii")
    return weights


def check_affordable(
    task: Task, heads: Heads, queries: ArrayLike, rtol: float | None = None
) -> None:
    """Raise Uncovered where exact theory of that accuracy would take minutes or more."""
    percent = isinstance(heads.rule, Kernel) and (rtol is None or rtol >= LEAST_PERCENT)
    closed = isinstance(task.target, TrigonometricSeries) and isinstance(
        task.design, GaussianDesign
    )
    limit = MOST_PERCENT if percent else MOST_ENTRIES if closed else MOST_SAMPLED
    if isinstance(task.design, EmpiricalDesign):
        limit = MOST_PERCENT * FEW_ROWS // max(FEW_ROWS, len(task.design.rows))
        percent = True
    entries = np.size(queries) // task.design.dimension * heads.count * (heads.count + 1) // 2
    if entries > limit or (heads.width > WIDEST_HEAD and not percent):
        got = f"of width {heads.width} with {entries:,} entries (query, head, head)"
        allowed = (
            f"width <= {WIDEST_HEAD}, <= {limit:,} entries here by order auto; order exact: any"
        )
        raise Uncovered("heads", got, allowed)


def without_value(n: int, bandwidth: ArrayLike, place: str) -> InputError:
    """Error for a problem without a number, since the mass of its integrals is lost in float64."""
    got = f"n = {n}, bandwidth {float(np.min(bandwidth)):g} at {place}"
    allowed = (
        "more keys, queries near them, a bandwidth near their spread: theory has no value here"
    )
    return InputError("n, heads.bandwidth", got, allowed)


def add_cautions(data: xr.Dataset) -> xr.Dataset:
    """First-order terms with ``cautions`` and ``faults`` about their range of validity.

    A caution names the query and head of the least n_eff or n_third, if that is below
    :data:`FEW_KEYS`. Where it is below 1, or terms are beyond float64, a fault names one, and the
    terms are NaN: of these heads and queries, and of what contains them.
    """
    numbers = np.nan_to_num([data["n_eff"].values, data["n_third"].values])
    which, query, head = np.unravel_index(numbers.argmin(), numbers.shape)
    least = f"{('n_eff', 'n_third')[which]} = {numbers.min():.2g} at query {query}, head {head}"
    lost = np.argwhere(~np.isfinite(sum(data[name].values for name in PAIRS)))
    fault = ""
    if len(lost):
        query, head, _ = lost[0]
        fault = f"first-order theory is beyond float64 at query {query}, head {head}"
    elif numbers.min() < 1:
        fault = f"first-order theory says nothing: {least}, below 1"
    elif numbers.min() < FEW_KEYS:
        data.attrs["cautions"] = f"first-order theory is rough: {least}, below {FEW_KEYS}"
    if fault:
        data.attrs["faults"] = "\n".join([*phrases(data, "faults"), fault])
    return _without(data, numbers.min(0) < 1)


def _without(data: xr.Dataset, hidden: Bool[np.ndarray, "Q H"]) -> xr.Dataset:
    """Terms with NaN where a head at a query is hidden, and in the means that contain it."""
    if not hidden.any():
        return data
    pairs = hidden[:, :, None] | hidden[:, None, :]
    masks = {"bias": hidden, **dict.fromkeys(PAIRS, pairs)}
    masks |= {f"integrated_{name}": pairs.any(0) for name in PAIRS}
    masks |= dict.fromkeys(SCALARS, hidden.any())
    terms = {}
    for name, mask in masks.items():
        values = data[name].values.copy("K")  # another layout would be summed in another order
        values[mask] = np.nan
        terms[name] = (data[name].dims, values)
    return data.assign(terms)


def in_range(terms: xr.Dataset) -> bool:
    """True if theory has neither a caution nor a fault to say of its terms."""
    return not terms.attrs.keys() & {"cautions", "faults"}


def noise_for_share(terms: xr.Dataset, share: float) -> float:
    """Variance σ² of the label noise with which variance is a share of the ensemble's error.

    With squared bias β, signal variance S and noise variance σ²v, to first order: ``σ² = (β s/(1 −
    s) − S)/v``. Negative where signal variance alone is a larger share.

    Args:
        terms: of uniform weights, at σ = 1.
        share: s, below 1.
    """
    bias, signal, noise = (float(terms[f"integrated_{name}"].mean()) for name in PAIRS)
    return (bias * share / (1 - share) - signal) / noise
