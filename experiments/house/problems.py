"""The house sample: problems drawn from the law of experiment.yaml, with six sets of heads each.

Both roads take the problems from here. Numbers of a problem that the law cannot name (label noise,
a tuned bandwidth) are solved by first-order theory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sims.diversity import DEFINITIONS, geometric_gram
from sims.problem import DESIGNS, FRAMES, TARGETS, Heads, Target, Task, TrigonometricSeries
from sims.problem.design_laws import GaussianDesign
from sims.study.study import Fields
from sims.theory import FEW_KEYS, predict
from sims.theory.first_order.closed_forms import first_order_arrays

from .sets import HAAR, INDICES

ALIGNED = (0.05, 0.2, 0.5)
"""Of the first three sets: the share of a head's frame that is its own."""
WIDEST, DIMENSION = 4, 16
"""What frames and keys are padded to by zero columns, so that few programs are compiled."""
GRID = np.geomspace(1 / 4, 4, 9)
"""Bandwidths that tuning tries, over the drawn one."""
NOISE = (1e-3, 1e3)
"""Range of the label noise that is solved for; a draw beyond it is rejected."""


@dataclass(frozen=True)
class Problem:
    """One problem of the law.

    Attributes:
        parameters: what the law drew, and what was solved from it.
        task: keys, target and label noise.
        covariance: Σ of the keys, (d, d).
        sets: six sets of heads.
        queries: (Q, d).
        number: of the problem, from 0; None of one that no draw made.
    """

    parameters: dict[str, Any]
    task: Task
    covariance: np.ndarray
    sets: list[Heads]
    queries: np.ndarray
    number: int | None

    @property
    def n(self) -> int:
        """Number of keys."""
        return int(self.parameters["keys"])

    def target(self, number: int) -> Target:
        """The target, or another one of its family, number ≥ 1, on the same keys."""
        return _target(self.parameters, number)


def built(drawn: Fields) -> Problem | None:
    """The problem of a draw, None if no label noise gives the drawn share of variance."""
    dimension, covariance = drawn["dimension"], np.eye(drawn["dimension"])
    if drawn["correlated"]:
        law: Any = DESIGNS["decaying_spectrum"](dimension, drawn["spectrum"], drawn["rotation"])
        covariance = np.asarray(law.covariance)
    design, rng = GaussianDesign(covariance), np.random.default_rng(drawn["queries"])
    root = np.linalg.cholesky(covariance)
    queries = drawn["reach"] * rng.normal(size=(drawn["query_count"], dimension)) @ root.T
    bandwidth = drawn["bandwidth"] * (drawn["width"] ** 0.5 if drawn["kernel"] == "gaussian" else 1)
    frames = _frames(drawn, drawn["frames"])
    keys = _frames(drawn, drawn["key_frames"]) if drawn["apart"] else frames
    sets = [Heads(f, drawn["kernel"], bandwidth, k) for f, k in zip(frames, keys, strict=True)]
    task = Task(design, _target(drawn, 0), 1.0)
    parameters = drawn | {"bandwidth": bandwidth, "edge": False, "rejected": drawn.attempt}
    problem = Problem(parameters, task, covariance, sets, queries, drawn.number)
    noise = _noise(problem, drawn["share"])
    if noise is None:
        return None
    problem = replace(problem, task=Task(design, task.target, noise))
    if drawn["tuned"]:
        problem = _tuned(problem)
    grams = np.stack([geometric_gram(heads.frames) for heads in problem.sets])
    index = {name: DEFINITIONS[name](grams).tolist() for name in INDICES}
    solved = {"noise_sd": noise, "fits": _fits(drawn), "index": index}
    return replace(problem, parameters=problem.parameters | solved)


def _fits(drawn: Mapping[str, Any]) -> bool:
    """Whether an orthogonal set has room: H·d_k ≤ d."""
    return bool(drawn["heads"] * drawn["width"] <= drawn["dimension"])


def _frames(drawn: Mapping[str, Any], seed: int) -> list[np.ndarray]:
    """Frames (H, d, d_k) of the sets: three ever less aligned, Haar twice, and orthogonal.

    Where orthogonal frames have no room the last set is Haar.
    """
    heads, dimension, width = (drawn[k] for k in ("heads", "dimension", "width"))
    draws = np.asarray(FRAMES["haar"](dimension, 3 * heads + 1, width, seed))
    base, first, second, third = draws[:1], *np.split(draws[1:], 3)
    mixed = [np.linalg.qr((1 - t) ** 0.5 * base + t**0.5 * first)[0] for t in ALIGNED]
    if _fits(drawn):
        rows = np.linalg.qr(third.transpose(1, 0, 2).reshape(dimension, -1))[0]
        third = rows.reshape(dimension, heads, width).transpose(1, 0, 2)
    return [*mixed, first, second, third]


def _target(drawn: Mapping[str, Any], number: int) -> TrigonometricSeries:
    words = {"seed": (drawn["target"] + number) % 2**62, "lengthscale": drawn["lengthscale"]}
    words["features"] = drawn["features"]
    if drawn["smoothness"] == "matern":
        return TARGETS["matern"](drawn["dimension"], nu=drawn["roughness"], **words)
    return TARGETS["rbf"](drawn["dimension"], **words)


def _noise(problem: Problem, share: float) -> float | None:
    """Label noise at which variance has that share in the error of the first Haar set.

    With squared bias β, signal variance S and noise variance σ²v of the ensemble, all to first
    order: ``σ² = (β s/(1 − s) − S)/v``. None where that is no noise within :data:`NOISE`.
    """
    terms = predict(problem.task, problem.sets[HAAR], problem.n, problem.queries)
    with np.errstate(invalid="ignore"):  # far out of its range theory has infinities of both signs
        bias, signal, noise = (
            float(terms[f"integrated_{k}"].mean())
            for k in ("bias_product", "signal_covariance", "noise_covariance")
        )
    square = (bias * share / (1 - share) - signal) / noise
    within = NOISE[0] ** 2 < square < NOISE[1] ** 2  # False of a NaN, too
    return float(square**0.5) if within else None


def _tuned(problem: Problem) -> Problem:
    """The problem with the bandwidth that minimises the mean error of its sets, to first order.

    A minimum at the end of the grid, or beside a bandwidth out of theory's range, is at the edge.
    """
    errors, keys = map(np.asarray, _errors(*stacked(problem)))
    errors = np.where(keys >= FEW_KEYS, errors, np.inf)
    if not np.isfinite(errors).any():
        return replace(problem, parameters=problem.parameters | {"edge": True})
    best = int(errors.argmin())
    edge = best in (0, len(GRID) - 1) or not np.isfinite(errors[[best - 1, best + 1]]).all()
    factor = float(GRID[best])
    parameters = problem.parameters
    changed = {"bandwidth": parameters["bandwidth"] * factor, "edge": edge}
    sets = [Heads(h.frames, h.rule, h.bandwidth * factor, h.key_frames) for h in problem.sets]
    return replace(problem, parameters=parameters | changed, sets=sets)


@jax.jit
def _errors(task, heads, n, queries):  # type: ignore[no-untyped-def]
    """Over the sets the mean error and the fewest keys of a head, at each bandwidth of the grid."""

    def of_set(heads):  # type: ignore[no-untyped-def]
        terms = first_order_arrays(task, heads, n, queries)
        variance = (terms.signal_covariance + terms.noise_covariance).mean((1, 2))
        error = (terms.bias.mean(1) ** 2 + variance).mean()
        return error, jnp.minimum(terms.n_eff.min(), terms.n_third.min())

    def of_grid(factor):  # type: ignore[no-untyped-def]
        scaled = eqx.tree_at(lambda h: h.bandwidth, heads, heads.bandwidth * factor)
        error, keys = jax.lax.map(of_set, scaled)
        return error.mean(), keys.min()

    return jax.lax.map(of_grid, jnp.asarray(GRID))


def stacked(problem: Problem) -> tuple[Task, Heads, float, np.ndarray]:
    """The problem of :func:`padded` with its sets along the first axis of the heads' arrays."""
    sets = padded(problem)
    heads = jax.tree.map(lambda *leaves: np.stack(leaves), *(h for _, h, _, _ in sets))
    task, _, n, queries = sets[0]
    return task, heads, float(n), queries


def padded(problem: Problem) -> list[tuple[Task, Heads, int, np.ndarray]]:
    """The problem of every set, its keys and frames filled up with zero columns.

    The law of every term stays; draws are those of keys in R^16.
    """
    extra = DIMENSION - problem.task.dimension
    design = GaussianDesign(np.pad(problem.covariance, (0, extra)))
    target = problem.task.target.padded(extra)
    task = Task(design, target, problem.task.noise_sd)
    queries = np.pad(problem.queries, ((0, 0), (0, extra)))

    def wide(frames: Any) -> np.ndarray:
        return np.pad(np.asarray(frames), ((0, 0), (0, extra), (0, WIDEST - frames.shape[2])))

    return [
        (task, Heads(wide(h.frames), h.rule, h.bandwidth, wide(h.of_keys)), problem.n, queries)
        for h in problem.sets
    ]


def described(problem: Problem) -> dict[str, Any]:
    """A problem with its six sets of heads, as ``sims sweep`` reads it."""
    heads, task = problem.sets[HAAR], problem.task
    series = {
        k: np.asarray(getattr(task.target, k)).tolist() for k in ("amplitude", "frequency", "phase")
    }

    def frames(places: str) -> list[dict[str, Any]]:
        return [
            {
                "label": f"set {k}, index {problem.parameters['index']['mean'][k]:.2f}",
                "kind": "explicit",
                "frames": np.asarray(getattr(ensemble, places)).tolist(),
            }
            for k, ensemble in enumerate(problem.sets)
        ]

    pairs = zip(frames("frames"), frames("of_keys"), strict=True)
    return {
        "problem": {
            "dimension": task.dimension,
            "design": {"kind": "gaussian", "covariance": problem.covariance.tolist()},
            "target": {"kind": "explicit", **series},
            "noise_sd": float(task.noise_sd),
            "heads": {
                "count": heads.count,
                "width": heads.width,
                "frames": {"kind": "haar"},
                "kernel": problem.parameters["kernel"],
                "bandwidth": float(heads.bandwidth[0]),
            },
            "n": problem.n,
            "queries": {
                "kind": "explicit",
                "count": len(problem.queries),
                "points": problem.queries.tolist(),
            },
        },
        "simulation": {"batches": 32, "replicates_per_batch": 64},
        "sweep": {"list": [{"heads.frames": a, "heads.key_frames": b} for a, b in pairs]},
    }
