"""Made-up results of two problems of every experiment, and the effects that they have.

A module of this package has the law's values, the simulated ones and the effects expected, ``LAW``,
``SIMULATED`` and ``EXPECTED``; or it, or the tests.py of an experiment's folder, has a function
``plant`` of the results of a tiny run. Claims hold in its first problem, and fail in the second.
Where theory has the effect, too, it is the same; of a pair of lists the second one is theory's.
"""

from importlib import import_module
from importlib.util import find_spec

from sims.study.referenced_files import load_module
from tests.experiments.planted.made import plant_terms


def planted(experiment, results):
    """The results with planted values, and the effects expected; None where nothing plants them."""
    path = experiment.study.folder / "tests.py"
    if path.is_file():
        return load_module(path).plant(results)
    name = f"{__name__}.{experiment.name}"
    if not find_spec(name):
        return None
    made = import_module(name)
    if hasattr(made, "plant"):
        return made.plant(results)
    return plant_terms(results, made.LAW, made.SIMULATED, made.EXPECTED)
