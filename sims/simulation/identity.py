"""What a result is of: the problem, the seed and the settings that decide its numbers."""

from typing import Any

import jax
import numpy as np

from sims.identity import digest
from sims.problem import Heads, Task
from sims.simulation.batches import Settings
from sims.simulation.replicate import Linearisation


def fingerprint(
    task: Task,
    heads: Heads,
    queries: np.ndarray,
    root: Any,
    settings: Settings,
    choices: tuple[bool, bool],
    known: Linearisation | None,
) -> str:
    """A digest of all that decides the numbers: problem and functions, seed, R and precision."""
    sizes = (settings.n, settings.replicates, settings.dtype, settings.raw_labels, *choices)
    return digest(task, heads, known, queries, jax.random.key_data(root), sizes)


def seed_text(root: Any) -> str:
    """A key, written out."""
    return "key " + " ".join(str(word) for word in np.asarray(jax.random.key_data(root)))
