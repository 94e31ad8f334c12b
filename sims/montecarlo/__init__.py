"""The Monte Carlo driver for any replicate function, independent of attention.

It handles random keys, batches, devices, stopping, resumption, MCSE and progress.
"""

from sims.montecarlo.compiled import Fold, Replicates
from sims.montecarlo.draws import Draw, replicate_key, root_key
from sims.montecarlo.driver import Sampling, run
from sims.montecarlo.host import HostBatches, HostReplicates
from sims.montecarlo.sampler import Rounds, Sampler

__all__ = [
    "Draw",
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
