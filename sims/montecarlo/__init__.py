"""The Monte Carlo driver, for any replicate function; it knows no attention.

Random keys, batches, devices, stopping, resumption, MCSE, progress, and the store of results. Its
names are loaded at their first use, so that :mod:`~sims.montecarlo.store` needs no JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sims.montecarlo.compiled import Fold, Replicates
    from sims.montecarlo.draws import Draw, Draws, replicate_key, root_key
    from sims.montecarlo.driver import Sampling, run
    from sims.montecarlo.host import HostBatches, HostReplicates
    from sims.montecarlo.sampler import Rounds, Sampler

_HOMES = {
    "compiled": ("Fold", "Replicates"),
    "draws": ("Draw", "Draws", "replicate_key", "root_key"),
    "driver": ("Sampling", "run"),
    "host": ("HostBatches", "HostReplicates"),
    "sampler": ("Rounds", "Sampler"),
}

__all__ = [
    "Draw",
    "Draws",
    "Fold",
    "HostBatches",
    "HostReplicates",
    "Replicates",
    "Rounds",
    "Sampler",
    "Sampling",
    "replicate_key",
    "root_key",
    "run",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"sims.montecarlo.{home}"), name)
    raise AttributeError(f"module 'sims.montecarlo' has no attribute {name!r}")
