"""Learning problems drawn from the law of experiment.yaml; both roads take them from here."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sims.problem.law import Law


def drawn(
    law: Mapping[str, Any], sizes: Sequence[tuple[int, int]], seed: int, number: int
) -> dict[str, Any]:
    """Problem of that number; sizes take turns, so that each has as many.

    ``noise_sd`` follows from the drawn share s of label noise in the error of a random head, about,
    of a target of variance one: ``σ² = (n/e) s/(1 − s)``, as n weights of scores N(0, 1) count for
    n/e.
    """
    heads, width = sizes[number % len(sizes)]
    values = Law(law).draw(seed, number) | {"heads": heads, "width": width}
    noise = values["keys"] / np.e * values["share"] / (1 - values["share"])
    return values | {"noise_sd": float(noise**0.5)}
