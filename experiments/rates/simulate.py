"""The error of one head and of averaged ones at their best bandwidths, a unit a number of keys."""

from sims.simulation.many import ProblemsSampler, sampler_of
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .problems import POOLS, draw


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """All simulated problems at each n; of two places of ``problem`` the first is of one head."""
    settings, simulation = experiment.settings, experiment.simulation
    numbers = range(settings["simulated"])
    problems = [draw(experiment.spec.law or {}, simulation.seed, number) for number in numbers]
    samples: dict[str, SampledUnit] = {}
    for n in settings["sizes"]:
        members = [
            sampler_of(
                *problem.simulated(pool, n),
                precision=simulation.precision,
                raw_labels=False,
                keep_queries=False,
            )[0]
            for problem in problems
            for pool in POOLS[:2]
        ]
        streams = [(n, number) for number in numbers for _ in POOLS[:2]]
        samples[f"n = {n}"] = SampledUnit(ProblemsSampler(members, streams), {"n": n})
    return samples
