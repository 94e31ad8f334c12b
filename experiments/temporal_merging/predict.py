"""First-order theory of merged heads, equivalent temperatures, and sizes by their formulas."""

import numpy as np
import xarray as xr

from sims.problem import GaussianDesign, Heads, SequenceDesign, Task, TrigonometricSeries
from sims.study.experiment import Experiment, Point
from sims.study.roads import predict_terms
from sims.terms import HEAD, QUERY
from sims.theory import predict as predict_problem
from sims.theory.neighbours import merging
from sims.weights import FACTORIES

SHARP = 1e-4
"""The bandwidth that stands for b → 0."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """Terms of every point of the grid, and sizes.

    Points of unmerged softmax heads carry ``retuned``, the noise variance of heads over pairs of
    keys at the temperature that gives them the same limit. Sizes are by stride, last of MHA.
    """
    out = {point.name: _terms(experiment, point) for point in experiment.points}
    sizes = experiment.settings["sizes"]
    heads, width, latent, rotary, tokens = (
        sizes[name] for name in ("heads", "width", "latent", "rotary", "tokens")
    )
    slots = np.array([-(-tokens // stride) for stride in sizes["strides"]])
    each, trained = heads * (2 * latent + rotary), sizes["training"] ** 2
    waves = experiment.settings["waves"]
    out["sizes"] = xr.Dataset(
        {
            "elements": ("count", [*((latent + rotary) * slots), 2 * heads * width * tokens]),
            "products": ("count", [*(each * slots), 2 * heads * width * tokens]),
            "training": ("count", [*np.full(len(slots), each * trained), np.nan]),
            "lost": ("wave", [lost_height(omega) for omega in waves]),
        }
    )
    return out


def _terms(experiment: Experiment, point: Point) -> xr.Dataset:
    problem = point.spec.build()
    terms = predict_terms(problem, experiment.theory)
    rule = point.spec.heads.kernel
    design = problem.task.design
    assert not isinstance(rule, str)  # merged, of this experiment's grid
    assert isinstance(design, SequenceDesign)
    if rule.stride > 1 or rule.scores != "dot":
        return terms
    rho = design.autocorrelation(2)
    variance = merging.lag([0.5, 0.5], rho, 0).slots
    overlap = problem.n / terms["n_eff"]
    noise = float(problem.task.noise_sd) ** 2 * overlap / problem.n
    retuned = noise * overlap ** (1 / variance - 1)
    return terms.assign(retuned=retuned.mean((QUERY, HEAD)))


def lost_height(omega: float) -> float:
    """The share of cos ωx that a gaussian head over pairs of iid keys in R loses as b → 0."""
    task = Task(GaussianDesign(np.eye(1)), TrigonometricSeries([1.0], [[omega]], [0.0]), 0.0)
    rule = FACTORIES["merged"](2, scores="distance")
    terms = predict_problem(task, Heads(np.ones((1, 1, 1)), rule, SHARP), 10**6, np.zeros((1, 1)))
    return float(1 - terms["limit"].values[0, 0])
