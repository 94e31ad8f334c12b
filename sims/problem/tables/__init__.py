"""Tables of real rows, to be laws of keys: handwritten digits, and a Transformer's hidden states.

``SOURCE.md`` beside this file says where they come from; ``benchmarks/tables.py`` made them.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from sims.base.errors import InputError, one_of

WIDTH = 64
"""Columns of a table."""
TABLES = {
    "digits": "863c6b20db6ac7790776736818c3564d6747c26adc2f26ab6c959cba7806af45",
    "text": "d2804ba8a127554d5c09a665297891c0714c01feae6e4dbfbc0ca921d6ddd03f",
}
"""Name to SHA-256 of the file, so that whatever depends on this module depends on the rows."""


def place(name: str) -> Path:
    """The file of a table."""
    return Path(__file__).with_name(f"{name}.npy")


def load_table(name: str) -> Float[np.ndarray, "N 64"]:
    """Distinct rows, centred, in their principal components, in order of falling variance.

    The variances (1/N) have mean 1 over the 64 columns; they are the data's own otherwise, nothing
    is whitened. For d < 64 take the first d columns, and rescale those to mean variance 1. Of
    ``digits`` the last three columns are 0: three pixels never vary.

    Args:
        name: ``digits`` or ``text``.

    Raises:
        InputError: there is no table of this name.
    """
    if name not in TABLES:
        raise InputError("table", name, one_of(TABLES, name))
    return np.load(place(name)).astype(np.float64)
