"""Whole splits of some regimes by simulation: one head and a pair give every number of heads."""

from typing import Any

import numpy as np

from sims.problem import Heads, Task
from sims.problem.design_laws import GaussianDesign
from sims.simulation.many import ProblemsSampler, sampler_of
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .grids import LATENT, splits
from .problems import Drawn, curve, draw, sampled

DIMENSION = 2 * LATENT
"""Of the keys: coordinates of the target, noise of the views, and columns that no head sees."""


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """The regimes that are simulated, by number.

    The dimension ``problem`` is that of splits and, within each, of targets with queries of their
    own; all splits of a target share its keys.
    """
    settings, simulation = experiment.settings, experiment.simulation
    options: dict[str, Any] = {
        "precision": simulation.precision,
        "raw_labels": False,
        "keep_queries": False,
    }
    design, samples = GaussianDesign(np.eye(DIMENSION)), dict[str, SampledUnit]()
    for number in range(settings["simulated"]):
        drawn = draw(experiment.spec.law or {}, simulation.seed, number)
        bandwidth = curve(drawn, drawn["keys"], drawn["budget"]).bandwidth[0]
        pairs = [heads(drawn, width, bandwidth[width - 1]) for width in splits(drawn["budget"])]
        tasks = []
        for k in range(settings["targets"]):
            target, queries = sampled(drawn, [simulation.seed, number, k])
            rest = DIMENSION - target.dimension
            wide = Task(design, target.padded(rest), drawn["noise_sd"])
            tasks.append((wide, np.pad(queries, ((0, 0), (0, rest)))))
        members = [
            sampler_of(wide, pair, drawn["keys"], queries, **options)[0]
            for pair in pairs
            for wide, queries in tasks
        ]
        sampler = ProblemsSampler(members, [(k,) for k in range(len(tasks))] * len(pairs))
        samples[f"{number:04d}"] = SampledUnit(sampler, {"number": number}, stream=(number,))
    return samples


def heads(drawn: Drawn, width: int, bandwidth: float) -> Heads:
    """Two heads of that width, or one head twice where it takes the whole budget."""
    frames, place = np.zeros((2, DIMENSION, LATENT)), np.arange(width)
    for head, frame in enumerate(frames):
        coordinates = place + head * width * (width < drawn["budget"])
        frame[coordinates if drawn["decay"] == "even" else place, place] = 1
        frame[LATENT + coordinates, place] += drawn["view_noise"]
    return Heads(frames, drawn["kernel"], bandwidth)
