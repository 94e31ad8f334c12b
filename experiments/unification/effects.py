"""Variance of pooled agents against the law, with v and ρ measured on other replicates."""

import numpy as np
import xarray as xr

from sims.effects import Effect, Families, of_batches
from sims.estimates import mcse
from sims.study.results import Results

KINDS = {"heads": "heads", "trees": "trees", "ants": "ants, lasting pheromone"}
"""Kind of the agents to their name as a fact of an effect, if all of them pool alike."""


def effects(results: Results) -> Families:
    """Pooled variances over the law's, and v and ρv over theory's, where it knows them."""
    names = systems(results)
    return {
        "pooled over the law": [gap for name in names for gap in gaps(results, name)],
        "measured over theory": [
            against_theory(results, name, term)
            for name in names
            if np.isfinite(results.prediction(measured(name))["variance"])
            for term in ("variance", "covariance")
        ],
    }


def systems(results: Results) -> dict[str, str]:
    """Name of a system to the kind of its agents and, of ants, of their pheromone."""
    return {
        system["name"]: "ants, evaporating pheromone"
        if system.get("evaporation")
        else KINDS[system["kind"]]
        for system in results.settings["systems"]
    }


def measured(name: str) -> str:
    """The point at which a system's v and ρ are measured."""
    return f"{name}, measured"


def law(results: Results, name: str) -> np.ndarray:
    """``C + (V − C)/M``, with V and C as measured, (batch, M)."""
    data = results.estimates[measured(name)]
    v, c = data["variance"].values[:, None], data["covariance"].values[:, None]
    return c + (v - c) / results.estimates[name]["agents"].values


def gaps(results: Results, name: str) -> list[Effect]:
    """Pooled variance over the law's, less 1, for M ≥ 2; the two are independent."""
    data, expected = results.estimates[name], law(results, name)
    pooled = data["pooled"].values
    ratio = pooled.mean(0) / expected.mean(0)
    parts = [mcse(values) / values.mean(0) for values in (pooled, expected)]
    rows = zip(data["agents"].values, ratio, ratio * np.hypot(*parts), strict=True)
    return [
        Effect(
            f"{name}, M = {agents}", float(quotient - 1), float(error),
            min(len(pooled), len(expected)), (name, measured(name)),
            replicates=results.replicates_at(name), at={"agents": systems(results)[name]},
        )
        for agents, quotient, error in rows
        if agents > 1
    ]  # fmt: skip


def against_theory(results: Results, name: str, term: str) -> Effect:
    """Measured v or ρv over theory's, less 1."""
    theory, values = results.prediction(measured(name)), results.estimates[measured(name)]
    expected = float(theory[term])
    return of_batches(
        f"{name}, {term}", values[term].values / expected - 1, measured(name),
        bound=float(theory[f"{term}_error"]) / expected, replicates=results.replicates_at(name),
    )  # fmt: skip


def collapsed(pooled: xr.Dataset, moments: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """``(Var/v − ρ)/(1 − ρ)``, which the law says is 1/M, with its standard error."""
    values, v, c = (
        pooled["pooled"].values,
        *(moments[k].values for k in ("variance", "covariance")),
    )
    scale = v.mean() - c.mean()
    share = (values.mean(0) - c.mean()) / scale
    # Linearised in V and C, batch by batch; the pooled part is independent of them.
    parts = np.outer(c - c.mean(), 1 - share) + np.outer(v - v.mean(), share)
    return share, np.hypot(mcse(values), mcse(parts)) / scale
