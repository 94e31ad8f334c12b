"""Studies: experiment files, problems of laws, results, answers, and the runner of all steps.

``sims.study.run("rates", fidelity="smoke")`` runs one experiment from Python, with the same call as
the command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sims.study.drawn import DrawnStudy
    from sims.study.running import Run, run
    from sims.study.study import Fields, Study

__all__ = ["DrawnStudy", "Fields", "Run", "Study", "run"]
_HOMES = {"DrawnStudy": "drawn", "Fields": "study", "Study": "study"}


def __getattr__(name: str) -> object:
    """Import the names above on first use: the Snakefile needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"sims.study.{_HOMES.get(name, 'running')}"), name)
