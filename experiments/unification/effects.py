"""Pooled agents against the law, with v and ρ measured elsewhere, and what diversity is worth."""

import numpy as np
import xarray as xr

from sims.effects import Effect, Families, of_batches
from sims.estimates import ratio
from sims.study.results import Results

KINDS = {"heads": "heads", "trees": "trees", "ants": "ants, lasting pheromone"}
"""Kind of the agents to their name as a fact of an effect, if all of them pool alike."""


def effects(results: Results) -> Families:
    """Pooled variances over the law's, v and ρv over theory's, and what a mechanism changes.

    What evaporation changes is counted as a rise, as it is no mechanism of diversity. Of trees
    there is the error of a whole forest, too, which is that of ever more of them.
    """
    names = systems(results)
    mechanisms = [
        mechanism
        for part in ("mechanisms", "pool_mechanisms")
        for mechanism in results.settings.get(part, ())
    ]
    return {
        "pooled over the law": [gap for name in names for gap in gaps(results, name)],
        "unequal weights over the law": [
            gap for name in names for gap in gaps(results, name, "unequal")
        ],
        "fall of the error": [fall(results, **mechanism) for mechanism in mechanisms],
        "fall of the error of ever more trees": [
            fall_of_many(results, **mechanism)
            for mechanism in mechanisms
            if trees(results) >= {mechanism["plain"], mechanism["changed"]}
        ],
        "fall of the correlation": [
            less_alike(results, **mechanism) for mechanism in results.settings["mechanisms"]
        ],
        "rise of the error": [fall(results, **results.settings["evaporation"]).scaled(-1)],
        "rise of the correlation": [
            less_alike(results, **results.settings["evaporation"]).scaled(-1)
        ],
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
        else "softmax heads"
        if system.get("kernel") == "softmax"
        else KINDS[system["kind"]]
        for system in results.settings["systems"]
    }


def trees(results: Results) -> set[str]:
    """Names of the systems of trees, those of which the pool's error alone is taken among them."""
    return {
        system["name"]
        for part in ("systems", "pools")
        for system in results.settings.get(part, ())
        if system["kind"] == "trees"
    }


def measured(name: str) -> str:
    """The point at which a system's v and ρ are measured."""
    return f"{name}, measured"


def law(results: Results, name: str, weights: str = "pooled") -> np.ndarray:
    """``C + (V − C) Σα²``, V and C as measured, (batch, M), with the weights α of the pool."""
    data, agents = results.estimates[measured(name)], results.estimates[name]["agents"].values
    v, c = data["variance"].values[:, None], data["covariance"].values[:, None]
    return c + (v - c) * squares(results, name, agents, weights)


def squares(results: Results, name: str, agents: np.ndarray, weights: str = "pooled") -> np.ndarray:
    """``Σα²`` of the weights of M agents: 1/M under equal ones, else of a geometric series.

    Each weight is a share of the next: what pheromone an ant leaves, or the share in the settings.
    """
    system = next(s for s in results.settings["systems"] if s["name"] == name)
    lost = system.get("evaporation", 0.0) if weights == "pooled" else results.settings["unequal"]
    if not lost:
        return 1 / agents
    q = 1 - lost
    return np.asarray((1 - q) * (1 + q**agents) / ((1 + q) * (1 - q**agents)))


def gaps(results: Results, name: str, weights: str = "pooled") -> list[Effect]:
    """Pooled variance over the law's, less 1, for M ≥ 2; the two are independent."""
    data = results.estimates[name]
    columns = zip(
        data["agents"].values, data[weights].values.T, law(results, name, weights).T, strict=True
    )
    return [
        of_batches(
            f"{name}, M = {agents}",
            ratio(pooled, expected) - 1,
            (name, measured(name)),
            replicates=results.replicates_at(name),
            at={"agents": systems(results)[name]},
        )
        for agents, pooled, expected in columns
        if agents > 1
    ]


def fall(results: Results, name: str, plain: str, changed: str) -> Effect:
    """How much smaller the error of the plain average is in one system than in another, relative.

    At the largest M of both; where systems share draws, the batches are paired.
    """
    both = [results.estimates[system] for system in (plain, changed)]
    agents = min(int(data["agents"].max()) for data in both)
    before, after = (data["error"].sel(agents=agents).values for data in both)
    return of_batches(
        f"{plain} to {changed}",
        1 - ratio(after, before),
        (plain, changed),
        replicates=min(map(results.replicates_at, (plain, changed))),
        at={"mechanism": name},
    )


def of_many(data: xr.Dataset) -> np.ndarray:
    """Error of the plain average of ever more agents: ``(M e_M − e_1)/(M − 1)``, (batch,).

    Where all agents are alike, and all pairs of them, the expected error of M is ``a + b/M``, at
    every M: a is the mean product of the errors of two agents, and a + b the error of one. Given
    their training set the trees of a forest are iid, so that a is the mean squared error of the
    mean over all trees that might be grown on it. With e at 1 and at the largest M of the same
    draws this is a without bias.
    """
    most = int(data["agents"].max())
    one, pool = (data["error"].sel(agents=agents).values for agents in (1, most))
    return np.asarray((most * pool - one) / (most - 1))


def fall_of_many(results: Results, name: str, plain: str, changed: str) -> Effect:
    """As :func:`fall`, of the errors of ever more agents; the batches are paired as there."""
    before, after = (of_many(results.estimates[system]) for system in (plain, changed))
    return of_batches(
        f"{plain} to {changed}, ever more",
        1 - ratio(after, before),
        (plain, changed),
        replicates=min(map(results.replicates_at, (plain, changed))),
        at={"mechanism": name},
    )


def less_alike(results: Results, name: str, plain: str, changed: str) -> Effect:
    """By how much the correlation of two agents is lower in one system than in another."""
    both = [results.estimates[measured(system)] for system in (plain, changed)]
    rho = [ratio(data["covariance"].values, data["variance"].values) for data in both]
    return of_batches(
        f"{plain} to {changed}",
        rho[0] - rho[1],
        (measured(plain), measured(changed)),
        replicates=min(map(results.replicates_at, (plain, changed))),
        at={"mechanism": name},
    )


def against_theory(results: Results, name: str, term: str) -> Effect:
    """Measured v or ρv over theory's, less 1."""
    theory, values = results.prediction(measured(name)), results.estimates[measured(name)]
    expected = float(theory[term])
    return of_batches(
        f"{name}, {term}",
        values[term].values / expected - 1,
        measured(name),
        bound=float(theory[f"{term}_error"]) / expected,
        replicates=results.replicates_at(name),
    )
