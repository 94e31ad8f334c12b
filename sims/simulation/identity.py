"""What a result is of: the problem, the seed and the settings that decide its numbers."""

import hashlib
from typing import Any

import jax
import numpy as np

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
    """A digest of all that decides the numbers: the problem, the seed, R and the precision."""
    digest = hashlib.sha256()
    for leaf in (*jax.tree.leaves((task, heads, known)), queries, jax.random.key_data(root)):
        array = np.asarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    kinds = (type(task.design).__name__, heads.kernel.name)
    digest.update(repr((kinds, settings.n, settings.replicates, settings.dtype)).encode())
    digest.update(repr((settings.raw_labels, *choices)).encode())
    return digest.hexdigest()[:16]


def seed_text(root: Any) -> str:
    """A key, written out."""
    return "key " + " ".join(str(word) for word in np.asarray(jax.random.key_data(root)))
