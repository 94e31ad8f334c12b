"""Learning problems drawn from the law of experiment.yaml; both methods take them from here."""

from collections.abc import Mapping, Sequence
from typing import Any

from sims.problem.law import Law


def draw_problem(
    law: Mapping[str, Any], sizes: Sequence[tuple[int, int]], seed: int, number: int
) -> dict[str, Any]:
    """Problem of that number; sizes take turns, and so do a list's maps of values.

    ``noise_sd`` is σ with the drawn ratio ``σ²/Var m``. A component of the target of additive share
    a has the variance ``a (1 − 5^{−1/2}) + (1 − a) (1 − (1 + 4/d)^{−d/2})``.
    """
    heads, width = sizes[number % len(sizes)]
    values = Law(law).draw(seed, number) | {"heads": heads, "width": width}
    if isinstance(law.get("maps"), list):
        values["maps"] = law["maps"][number // len(sizes) % len(law["maps"])]
    dimension = values["dimension"]
    isotropic = 1 - (1 + 4 / dimension) ** (-dimension / 2)
    variance = values["additive"] * (1 - 5**-0.5) + (1 - values["additive"]) * isotropic
    return values | {"noise_sd": float((values["noise_ratio"] * variance) ** 0.5)}
