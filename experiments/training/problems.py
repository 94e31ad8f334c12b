"""Learning problems drawn from the law of experiment.yaml; both roads take them from here."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sims.problem.law import Law


def drawn(law: Mapping[str, Any], seed: int, number: int) -> dict[str, Any]:
    """Problem of that number; sizes take turns, so that each has as many.

    ``noise_sd`` follows from the drawn share s of label noise in the error of a random head, about,
    of a target of variance one: ``σ² = (n/e) s/(1 − s)``, as n weights of scores N(0, 1) count for
    n/e.
    """
    fields = Law({name: how for name, how in law.items() if name != "sizes"})
    heads, width = law["sizes"][number % len(law["sizes"])]
    values = fields.draw(seed, number) | {"heads": heads, "width": width}
    noise = values["keys"] / np.e * values["share"] / (1 - values["share"])
    return values | {"noise_sd": float(noise**0.5)}
