"""The table behind the page "Try it", by the suite's theory, and a figure for want of scripts.

Six heads of dimension one see keys N(0, I) in R^6, and every two of them are at the same angle. Any
H of them have the same mean terms, so that one table serves every number of heads.
"""

from pathlib import Path
from typing import Any

import numpy as np

from sims import DESIGNS, FRAMES, TARGETS, Heads, Task, gaussian_queries
from sims.figures import COLUMN, panels
from sims.figures.theme import MARKERS, style
from sims.theory import first_order_terms

HEADS, KEYS, DRAWS = 6, 256, 8
ANGLES = np.linspace(0, 90, 10)
BANDWIDTHS = np.geomspace(0.05, 2.0, 11)
CONSTANT = 100.0
"""A bandwidth at which heads predict a constant."""
MATRICES = ("bias_product", "signal_covariance", "noise_covariance")
NOISES = (0.1, 1.0, 4.0)
"""Noise over signal, in the figure."""


def draw_problem(draw: int, angle: float, bandwidth: float) -> tuple[Task, Heads, np.ndarray]:
    """One draw of target, frames and queries: the task, six heads, and the queries."""
    target = TARGETS["rbf"](HEADS, seed=draw, lengthscale=4.0)
    task = Task(DESIGNS["isotropic"](HEADS), target, noise_sd=1.0)
    frames = FRAMES["equiangular"](HEADS, HEADS, 1, seed=draw, angle=angle)
    queries = gaussian_queries(HEADS, 24, scale=0.8, seed=draw)
    return task, Heads(frames, "gaussian", bandwidth=bandwidth), queries


def compute_terms(draw: int, angle: float, bandwidth: float) -> np.ndarray:
    """Terms of one head and of two, by theory, for one draw.

    Returns:
        (2, 4): squared bias, signal variance, noise variance of unit noise, and n_eff/n; below,
        the product of two biases, two covariances, and the order of first order's relative error.
    """
    task, heads, queries = draw_problem(draw, angle, bandwidth)
    terms = first_order_terms(task, heads, KEYS, queries)
    matrices = np.stack([terms[f"integrated_{name}"].values for name in MATRICES])
    alone = np.trace(matrices, axis1=1, axis2=2) / HEADS
    shared = (matrices.sum((1, 2)) / HEADS - alone) / (HEADS - 1)
    error = 1 / terms["n_eff"].median() + 1 / terms["n_third"].median()
    return np.column_stack([[alone, shared], [terms["n_eff"].mean() / KEYS, error]])


def compute_table() -> dict[str, Any]:
    """The table of the page: terms over the error of a constant, and what goes with them.

    Returns:
        ``alone`` (bandwidth, 3), terms of a head, whose mean over draws no angle changes;
        ``shared`` (angle, bandwidth, 3), those of two heads; ``selectivity`` n_eff/n, and
        ``error``, the order of theory's relative error. Noise terms are of unit noise.
    """
    means = np.empty((len(ANGLES), len(BANDWIDTHS), 2, 4))
    for place in np.ndindex(means.shape[:2]):
        cell = ANGLES[place[0]], BANDWIDTHS[place[1]]
        means[place] = np.mean([compute_terms(draw, *cell) for draw in range(DRAWS)], axis=0)
    selectivity, error = means[..., 3].mean(0).T
    terms = means[..., :3]
    constant = np.mean([compute_terms(draw, 90, CONSTANT)[0, 0] for draw in range(DRAWS)])
    alone = terms[:, :, 0].mean(0) / [constant, constant, 1]
    return {
        "heads": HEADS,
        "angles": ANGLES.tolist(),
        "selectivity": selectivity.round(3).tolist(),
        "error": error.round(3).tolist(),
        "alone": alone.round(5).tolist(),
        "shared": (alone * terms[:, :, 1] / terms[:, :, 0]).round(5).tolist(),
    }


def draw_figure(table: dict[str, Any], path: Path) -> None:
    """Write the error by angle of all heads, each set at its best temperature, as SVG."""
    terms = np.array(table["alone"]) / HEADS + (1 - 1 / HEADS) * np.array(table["shared"])
    with style():
        figure, axes = panels(width=1.4 * COLUMN, height=3.0)
        ax = axes[0, 0]
        for noise, marker in zip(NOISES, MARKERS, strict=False):
            errors = (terms * [1, 1, noise]).sum(-1).min(1)
            ax.plot(ANGLES, errors, marker=marker, label=f"noise / signal {noise:g}")
        ax.set_xlabel("angle between two heads (degrees)")
        ax.set_ylabel("error, relative to a constant's")
        ax.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None})
