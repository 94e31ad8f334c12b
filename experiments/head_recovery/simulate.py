"""Open directions of drawn layers, recovery, parameters, and heads along a gauge orbit."""

from sims.study.experiment import Experiment
from sims.study.units import SampledUnit

from .counting import bound_heads, free_heads, parameters, recovery
from .orbit import orbit


def units(experiment: Experiment) -> dict[str, SampledUnit]:
    """A unit a part; each draws by itself."""
    settings = experiment.settings
    samplers = {
        "free": free_heads(settings),
        "content": bound_heads(settings["content"]),
        "recovery, full row rank": recovery(settings["recovery"], "generic"),
        "recovery, plain sum": recovery(settings["recovery"], "repeated"),
        "parameters": parameters(settings["parameters"]),
    }
    found = {
        name: SampledUnit(sampler, {"part": name}, stream=(place,))
        for place, (name, sampler) in enumerate(samplers.items())
    }
    own = settings["orbit"]
    return found | {"orbit": SampledUnit(orbit(own), {"part": "orbit"}, own["replicates"])}
