"""Slopes of the error at the best bandwidth, for one head and for averaged heads."""

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from sims.effects import Effect, Families, of_batches
from sims.estimates import ratio
from sims.study.results import Results

ENSEMBLE = "ensemble"
FAR = np.geomspace(1e8, 1e16, 33)
COMMON = np.geomspace(1e3, 1e5, 17)
"""Numbers of keys of the slopes; of those at sizes that a practitioner would have."""
LEAST_KEYS = 10.0
"""Effective keys below which first-order theory says nothing."""
HEADS = (4, 8)
SATURATION = 2.0
"""The smoothness from which on a kernel of second order gains nothing."""
NESTED = ((1, 2), (2, 4))
"""(d_0, d_k) of averaged heads."""
Case = tuple[int, int, float]
"""Coordinates that the target depends on, head width, and number of heads (``inf`` allowed)."""
Widths = dict[int, xr.Dataset]
"""Head width to theory's moments."""
NODES = np.arange(-2, 3)
BETWEEN = np.linspace(-0.5, 0.5, 41)
LAGRANGE = np.linalg.solve(
    np.vander(NODES, 5, increasing=True).T.astype(float), np.vander(BETWEEN, 5, increasing=True).T
).T
"""Values between the nodes from values at the nodes, in steps of the grid of bandwidths."""


def effects(results: Results) -> Families:
    """Slopes by theory, one a group of targets, and what simulation says of theory."""
    data = widths(results)
    nested = [(d, k) for d, k in NESTED if d in data]
    averaged: list[Case] = [(d, k, heads) for d, k in nested for heads in HEADS]
    unlimited: list[Case] = [(d, k, np.inf) for d, k in nested]
    slope = {(width, width, 1.0): slopes(law, FAR) for width, law in data.items()}
    share = {case: gain(data, *case) for case in averaged}
    bound = {case: exponent(data[case[0]]["beta"].values, case[1]) for case in slope}
    rate = {case: stated(data, case) for case in [*slope, *averaged]}
    return {
        "slope": by_beta(data, {case: v - rate[case] for case, v in slope.items()}),
        "slope below the bound": by_beta(
            data, {case: bound[case] - v for case, v in slope.items()}
        ),
        "theory against simulation": compare(results),
        "share removed": by_beta(data, {case: 1 - v for case, v in share.items()}),
        "share left over the law": by_beta(
            data, {case: v / case[2] ** rate[case] - 1 for case, v in share.items()}
        ),
        "change of the slope": by_beta(data, changes(data, averaged, FAR)),
        "change of the slope, common sizes": by_beta(data, changes(data, averaged, COMMON)),
        "change of the slope, many heads": by_beta(data, changes(data, unlimited, FAR)),
        "change of the simulated slope": [simulated_change(results)],
    }


def widths(results: Results) -> Widths:
    """Head width to theory's moments of single heads."""
    names = [name for name in results.points if name != ENSEMBLE]
    return {int(name.split()[1]): results.prediction(name) for name in names}


def exponent(beta: ArrayLike, width: int) -> np.ndarray:
    """−2β/(2β + d_k)."""
    beta = np.asarray(beta)
    return -2 * beta / (2 * beta + width)


def stated(data: Widths, case: Case) -> np.ndarray:
    """The exponents stated for a case, (beta,)."""
    return exponent(np.minimum(data[case[0]]["beta"].values, SATURATION), case[1])


def by_beta(data: Widths, values: dict[Case, np.ndarray]) -> list[Effect]:
    """An effect for every smoothness, from values (group, beta): a replicate is a target draw."""
    draws = min(int(law.attrs["targets"]) for law in data.values())
    return [
        of_batches(
            f"{heads:g} heads of width {k} on {d} coordinates, β = {beta:g}",
            column,
            unit="target draws",
            replicates=draws,
            at={"beta": float(beta)},
        )
        for (d, k, heads), rows in values.items()
        for beta, column in zip(data[d]["beta"].values, rows.T, strict=True)
    ]


def changes(data: Widths, cases: list[Case], n: np.ndarray) -> dict[Case, np.ndarray]:
    """Slope of averaged heads less that of one of them, (group, beta)."""
    return {
        (d, k, heads): slopes(data[d], n, heads, k - d) - slopes(data[d], n, 1, k - d)
        for d, k, heads in cases
    }


def best(
    data: xr.Dataset, n: ArrayLike, heads: float = 1, extra: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Smallest MSE over bandwidths and where it is, each (…, n); … as in the data (group, beta).

    H heads (``inf`` allowed) of width d_0 + extra, averaged: the nuisance coordinates multiply the
    variance of a head by their overlap, and the covariance of two heads by 1. Around the best
    bandwidth of the grid, squared bias and variance are quartics of log b through five points,
    both in logarithms.
    """
    own = data["nuisance"] ** extra
    n = xr.DataArray(np.asarray(n, float), dims="n")
    bias = data["limit_bias"] + own * data["cross_bias"] / n + own**2 * data["ratio_bias"] / n**2
    variance = (own / heads + 1 - 1 / heads) * data["variance"] / n
    allowed = (bias + variance).where(n >= LEAST_KEYS * own * data["overlap"])
    order = ("bandwidth", *(d for d in allowed.dims if d not in ("bandwidth", "n")), "n")
    at = np.nanargmin(allowed.transpose(*order).values, axis=0)
    at = np.clip(at, 2, len(data["bandwidth"]) - 3)
    fine = np.zeros(())
    for part in (bias, variance):
        # At bandwidths far below the best one squared biases are below rounding.
        log = np.log(np.maximum(part.transpose(*order).values, np.finfo(float).tiny))
        near = [np.take_along_axis(log, at[None] + node, 0)[0] for node in NODES]
        fine = fine + np.exp(np.tensordot(LAGRANGE, near, axes=1))
    step = np.log(data["bandwidth"].values[1] / data["bandwidth"].values[0])
    return fine.min(0), data["bandwidth"].values[at] * np.exp(BETWEEN[fine.argmin(0)] * step)


def slope_of(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Least-squares slope of log values, along the last axis, on log x."""
    centred = np.log(x) - np.log(x).mean()
    return np.asarray(np.log(values) @ centred / (centred @ centred))


def slopes(data: xr.Dataset, n: np.ndarray, heads: float = 1, extra: int = 0) -> np.ndarray:
    """Least-squares slopes of log MSE on log n, (group, beta)."""
    return slope_of(best(data, n, heads, extra)[0], n)


def gain(data: Widths, relevant: int, width: int, heads: float) -> np.ndarray:
    """MSE of H heads over that of one at the largest n, (group, beta)."""
    last, extra = FAR[-1:], width - relevant
    one, many = (best(data[relevant], last, count, extra)[0] for count in (1, heads))
    return (many / one)[..., 0]


def simulated_slopes(results: Results) -> np.ndarray:
    """Slopes of log MSE on log n over the simulated sizes, of one head and of many, (2, batch)."""
    data = results.estimates[ENSEMBLE]
    return slope_of(data["mse_of_heads"].values, data["size"].values).T


def simulated_change(results: Results) -> Effect:
    """Slope of the most heads simulated less that of one."""
    one, many = simulated_slopes(results)
    return of_batches("d_k = 2", many - one, ENSEMBLE)


def compare(results: Results) -> list[Effect]:
    """Theory over simulation less 1 at every simulated problem, with n_eff and variance's share."""
    out = []
    for name in results.points:
        end = "_of_heads" if name == ENSEMBLE else ""
        batches = results.estimates[name][f"mse{end}"].values.astype(float)
        theory, n_eff, share = (
            results.prediction(name)[f"{k}{end}"].transpose(..., "size").values
            for k in ("mse", "n_eff", "variance_share")
        )
        for at in np.ndindex(theory.shape):
            gap = ratio(np.full(len(batches), theory[at]), batches[:, *at]) - 1
            facts = {"n_eff": float(n_eff[at]), "variance_share": float(share[at])}
            out.append(of_batches(f"{name} {at}", gap, name, at=facts))
    return out
