"""Simulation of a layer at every point of both arms, with aligned and with random heads."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from sims.montecarlo import HostBatches
from sims.montecarlo.draws import Draw
from sims.problem import TrigonometricSeries

from ..house.frames import draw_rotations
from ..house.moments import Sums, averages_of, sums_of
from ..house.pilot import ROTATIONS
from ..house.problems import Problem
from ..house.sets import ALIGNED, HAAR
from .layer import label_noise, layer_output, own_targets, tuned_bandwidths
from .points import ENDS, NAMES, POINTS, TEMPERATURES, Point

DIMS = ("end", "stage", "temperature")
TERMS = ("bias", "variance", "head_error", "noise", "simulated_noise")
"""Terms of a layer: squared bias, variance, mean squared error of a head in what it averages, label
noise by the identity, and as simulated."""


@dataclass(frozen=True)
class Layer:
    """A problem of ``house`` with what its heads own.

    Attributes:
        problem: of ``house``, in its equally good version.
        targets: of each head.
        bandwidth: of both ends at every point, at either temperature, (2, P, H).
    """

    problem: Problem
    targets: list[TrigonometricSeries]
    bandwidth: np.ndarray


def sampler(problem: Problem) -> HostBatches:
    """The sampler of a problem; all is NaN where no version of it is equally good."""
    layer = Layer(problem, [], np.empty(0))
    if problem.equal:
        targets = own_targets(problem)
        layer = Layer(problem, targets, tuned_bandwidths(problem, targets))
    coords = {"end": [*ENDS], "stage": [*NAMES], "temperature": [*TEMPERATURES]}
    dims = dict.fromkeys(TERMS, DIMS)
    return HostBatches(batch, constants=layer, dims=dims, coords=coords, partial=dims)


def batch(draw: Draw, replicates: int, layer: Layer) -> dict[str, np.ndarray]:
    """Unbiased estimates of every term, on the keys, queries and rotations of ``house``."""
    problem = layer.problem
    shape = (len(ENDS), len(POINTS), len(TEMPERATURES))
    if not problem.equal:
        return {name: np.full(shape, np.nan, np.float32) for name in TERMS}
    rng = draw.rng()
    keys = problem.law.keys(rng, replicates, problem.n)
    rotations = draw_rotations(rng, ROTATIONS[problem.n], problem.law.dimension)
    queries = problem.queries(draw.batch)
    turned = rotations @ problem.key_frames[[ALIGNED, HAAR]]
    bandwidth = np.stack([layer.bandwidth.reshape(-1, problem.heads)] * len(ENDS))
    arguments = (queries, (turned, turned), bandwidth, problem.fields["kernel"])
    sums = sums_of(problem.target, keys, *arguments)
    own, truth = own_columns(rng, layer, keys, queries)
    columns = averages_of(keys, own, *arguments).columns - truth
    outputs = {name: np.zeros(shape, np.float32) for name in TERMS}
    for temperature, (place, point) in product(range(shape[2]), enumerate(POINTS)):
        chosen = temperature * len(POINTS) + place
        of_point = Sums(*(values[:, :, chosen] for values in sums))
        terms = terms_of(point, of_point, columns[:, :, chosen], problem.noise_sd)
        for name, values in terms.items():
            outputs[name][:, place, temperature] = values.mean(-1)
    return outputs


def terms_of(
    point: Point, sums: Sums, columns: np.ndarray, noise_sd: float
) -> dict[str, np.ndarray]:
    """The terms of :data:`TERMS` at a point by end and query, unbiased at any R ≥ 2.

    Args:
        point: of an arm.
        sums: of shared values, with axes (R, S, …).
        columns: what heads average beside, less what it estimates, (R, S, H, Q, 3).
        noise_sd: σ.
    """
    shared, own = sums.deviation, columns[..., 0]
    replicates, _, heads, _ = shared.shape
    signal = layer_output(point, shared, own)
    labels = layer_output(point, columns[..., 1], columns[..., 2])
    identity = label_noise(point, sums.ensemble_noise, sums.noise, heads)
    noise = noise_sd**2 * identity.mean(0)
    spread = signal.var(1, ddof=1).sum(0)
    averaged = shared
    if point.arm == "values":
        averaged = point.alignment**0.5 * shared + (1 - point.alignment) ** 0.5 * own
    return {
        "bias": (signal.mean(1) ** 2).sum(0) - spread / replicates,
        "variance": spread + noise,
        "head_error": (averaged**2).mean((0, 2)) + noise_sd**2 * sums.noise.mean(0),
        "noise": noise,
        "simulated_noise": (labels**2).sum(0).mean(0),
    }


def own_columns(
    rng: np.random.Generator,
    layer: Layer,
    keys: tuple[np.ndarray, np.ndarray],
    queries: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Columns of each head's values, (R, H, n, 3), and what they estimate at queries, (H, Q, 3).

    The head's own target, label noise that all heads share, and noise of the head's own. Labels of
    a key that was drawn c times have the noise of their mean.
    """
    points, times = keys
    sd = layer.problem.noise_sd / np.sqrt(np.maximum(times, 1))
    heads = layer.problem.heads
    shared = np.repeat((sd * rng.normal(size=times.shape))[:, None], heads, axis=1)
    noise = sd[:, None] * rng.normal(size=shared.shape)
    signal = np.stack([target.values(points) for target in layer.targets], axis=1)
    truth = np.zeros((heads, len(queries), 3))
    truth[..., 0] = [target.values(queries) for target in layer.targets]
    return np.stack([signal, shared, noise], axis=-1), truth
