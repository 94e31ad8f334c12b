"""From the engine's arrays to the labelled result, and back (to resume a run)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from numpy.typing import ArrayLike

from sims.base import estimates, terms
from sims.problem import Heads, Kernel, Task
from sims.problem.empirical import EmpiricalDesign, unit_cautions
from sims.simulation.heads import vanishes
from sims.simulation.rounding import Shares

FEW_KEYS = 2.0
"""Effective keys below which a head is near to copying one label."""
UNNOTICED = 1e-6
"""Share of a term below which rounding is no fault, also where nothing varies."""


def build(
    arrays: Mapping[str, np.ndarray],
    *,
    keep_queries: bool,
    weights: ArrayLike | None = None,
) -> xr.Dataset:
    """Label the batches of the engine and derive all that follows, without MCSE.

    Args:
        arrays: results of :data:`~.moments.BATCH_ESTIMATES`, batch first; averaged over queries,
            one query left, unless ``keep_queries``.
        keep_queries: whether variables with a query dimension stay.
        weights: α (H,), None is uniform.
    """
    lead = terms.lead(arrays["bias"].ndim)
    # Variables, and one dataset at the end: one for every step takes longer than a small problem.
    pairs = map(arrays.__getitem__, terms.PAIRS)
    variables = terms.label_terms(arrays["bias"], *pairs, weights=weights)
    variables["empty_rate"] = xr.Variable(lead, arrays["empty_rate"])
    if not keep_queries:
        variables["mean_empty_rate"] = variables["empty_rate"].mean(terms.QUERY, skipna=False)
        variables = {
            name: values for name, values in variables.items() if terms.QUERY not in values.dims
        }
    return xr.Dataset(variables)


def batch_arrays(data: xr.Dataset) -> dict[str, np.ndarray]:
    """The arrays that :func:`build` was given, from its result."""
    if terms.QUERY in data.dims:
        return {name: data[name].values for name in ("bias", *terms.PAIRS, "empty_rate")}
    arrays = {name: data[f"integrated_{name}"].values[:, None] for name in terms.PAIRS}
    heads = np.zeros((data.sizes[terms.BATCH], 1, data.sizes[terms.HEAD]))
    return arrays | {"bias": heads, "empty_rate": data["mean_empty_rate"].values[:, None]}


def reached(data: xr.Dataset, rel_mcse: float, negligible: float = 1e-3) -> bool:
    """True if every scalar term has ``mcse ≤ rel_mcse·|term|`` or is negligible next to the MSE.

    Negligible: ``|term| + 2·mcse ≤ negligible·MSE``.

    The cross terms of a single head, which do not exist, are passed over; any other value that is
    not finite is not known.
    """
    mse = float(data["mse"].mean())
    for name in terms.SCALARS:
        value = abs(float(data[name].mean()))
        error = float(terms.mcse(data[name]))
        if np.isnan(value) and name in terms.CROSS:
            continue
        if not np.isfinite(value + error):
            return False
        if error > rel_mcse * value and value + 2 * error > negligible * mse:
            return False
    return True


def unseen(empty_rate: np.ndarray) -> int:
    """At how many (query, head) no replicate had a key in reach: their spread of 0 tells nothing.

    Of integrals over queries, for how many heads that is so at every query.
    """
    return int((empty_rate.min(0) == 1).sum())


def describe_run(
    values: Mapping[str, np.ndarray],
    attrs: Mapping[str, Any],
    task: Task,
    heads: Heads,
    queries: Float[np.ndarray, "Q d"],
    shares: Shares,
    asked: str,
) -> dict[str, Any]:
    """Events of a simulation: attributes of :func:`~.engine.estimate`'s result.

    Args:
        values: its variables by name, batch first.
        attrs: attributes of the driver.
        task: design, target, noise level.
        heads: H heads.
        queries: x.
        shares: bounds on the rounding error.
        asked: requested precision.
    """
    faults = attrs.get("faults", "").splitlines()
    cautions = []
    by_query = "empty_rate" in values
    rates = values["empty_rate" if by_query else "mean_empty_rate"]
    faults += _hidden_keys(values, attrs, task, heads, queries, rates)
    faults += _rounded_terms(values, shares)
    rates = rates.mean(0)
    rate = float(rates.mean())
    attributes: dict[str, Any] = {"rounding": shares.largest, "empty_rate": rate}
    if attrs["precision"] != asked:
        cautions.append(f"{attrs['precision']} in place of {asked}, which rounds too far here")
    if isinstance(task.design, EmpiricalDesign) and isinstance(heads.rule, Kernel):
        cautions += unit_cautions(task.design.rows, heads.of_keys, heads.bandwidth)
    if rate:
        caution = f"no key in reach in {rate:.2g} of all cases, which count as the estimate 0"
        cautions.append(caution)
        if not vanishes(heads.rule):
            faults.append(f"{caution}; but this kernel never vanishes: its exponents overflow")
    noise = values["noise_covariance" if by_query else "integrated_noise_covariance"]
    noise_variance = np.diagonal(noise.mean(0), axis1=-2, axis2=-1)
    seen = (noise_variance > 0) & (rates < 1)
    if task.noise_sd and seen.any():
        # Given that a key was in reach: the others count as 0.
        keys = float(task.noise_sd) ** 2 * (1 - rates[seen]) / noise_variance[seen]
        attributes["least_n_eff"] = float(keys.min())
        if keys.min() < FEW_KEYS:
            cautions.append(f"a head attends to {keys.min():.2g} keys at some query")
    if faults:
        attributes["faults"] = "\n".join(faults)
    if cautions:
        attributes["cautions"] = "\n".join(cautions)
    return attributes


def _hidden_keys(
    values: Mapping[str, np.ndarray],
    attrs: Mapping[str, Any],
    task: Task,
    heads: Heads,
    queries: Float[np.ndarray, "Q d"],
    rates: np.ndarray,
) -> Iterator[str]:
    """Faults of empty neighbourhoods: those that were always empty, and those too rare to see."""
    if never := unseen(rates):
        yield (
            f"no key was ever in reach at {never} of {rates[0].size} (query, head): an MCSE of 0 "
            "there is no certainty"
        )
    compact = isinstance(heads.rule, Kernel) and vanishes(heads.rule)
    if compact and rates.mean(0).min() == 0:
        # None in N replicates: its probability may be 3/N (at 95 %), its square error m(x)².
        truth = task.target.values(queries)
        hidden = 3 / attrs["replicates"] * float((truth**2).mean())
        if hidden > values["mean_head_mse"].mean():
            yield (
                "no empty neighbourhood was seen somewhere, but one too rare for that may add "
                f"{hidden:.1g} to the MSE, more than all that was seen"
            )


def _rounded_terms(values: Mapping[str, np.ndarray], shares: Shares) -> Iterator[str]:
    """Faults of terms that rounding moves by more than their standard errors."""
    square = np.diagonal(values["integrated_bias_product"], axis1=1, axis2=2).mean(1)
    for name, part, share in (
        ("bias and signal variance", square + values["signal_variance"], shares.by_keys),
        ("noise variance", values["noise_variance"], shares.noise),
    ):
        value, error = estimates.mean_and_error(part)
        if share * value > max(error, UNNOTICED * value):
            yield f"rounding by up to {share:.1g} of {name}, its MCSE {error / value:.1g}"
