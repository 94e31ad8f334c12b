"""The sample by simulation: six sets of heads on common keys, a unit a problem."""

from sims.simulation.many import ProblemsSampler, sampler_of
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .problems import draw, padded

FEW = 1024
"""Keys, of fewer of which a problem gets more replicates: they vary more, and cost less."""


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """The problems that are simulated, by number; the dimension ``problem`` is that of the sets."""
    settings, simulation = experiment.settings, experiment.simulation
    names = ("precision", "control_variate", "raw_labels", "keep_queries")
    options = {name: getattr(simulation, name) for name in names}
    samples: dict[str, SampledUnit] = {}
    for number in range(settings["simulated"]):
        problem = draw(experiment.spec.law or {}, simulation.seed, number)
        members = [sampler_of(*case, **options)[0] for case in padded(problem)]
        sampler = ProblemsSampler(members, [()] * len(members))
        replicates = simulation.replicates_per_batch * max(1, FEW // problem.n)
        samples[f"{number:04d}"] = SampledUnit(
            sampler, {"number": number}, replicates, stream=(number,)
        )
    return samples
