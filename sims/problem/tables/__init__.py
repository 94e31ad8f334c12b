"""Tables of real data as distributions of keys: handwritten digits, a Transformer's hidden states.

``SOURCE.md`` in this folder names their sources; ``benchmarks/tables.py`` creates them.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from sims.base.errors import InputError, one_of

WIDTH = 64
"""Number of columns of a table."""
TABLES = {
    "digits": "863c6b20db6ac7790776736818c3564d6747c26adc2f26ab6c959cba7806af45",
    "text": "d2804ba8a127554d5c09a665297891c0714c01feae6e4dbfbc0ca921d6ddd03f",
}
"""Name to SHA-256 of the file, so that all dependents of this module depend on the rows."""


def place(name: str) -> Path:
    """Path of a table's file."""
    return Path(__file__).with_name(f"{name}.npy")


def load_table(name: str) -> Float[np.ndarray, "N 64"]:
    """Distinct centred rows of a table in principal components, by decreasing variance.

    The variances (1/N) have mean 1 over the 64 columns; nothing is whitened. For d < 64, use the
    first d columns rescaled to mean variance 1. The last three columns of ``digits`` are 0, because
    three pixels never vary.

    Args:
        name: ``digits`` or ``text``.

    Raises:
        InputError: there is no table of this name.
    """
    if name not in TABLES:
        raise InputError("table", name, one_of(TABLES, name))
    return np.load(place(name)).astype(np.float64)
