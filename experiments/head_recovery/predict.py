"""Degrees of freedom and shares of parameters, by their formulas."""

import xarray as xr

from sims.study.experiment import Experiment
from sims.theory.neighbours import heads as law

from .layers import CONTENTS, free_layers


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """By the names of units; recovery and the orbit have no prediction."""
    settings = experiment.settings
    counts = [free(**layer) for layer in free_layers(settings).values()]
    p, own = settings["content"], settings["parameters"]
    bound = [
        [content(kind, gated, p["n"], p["heads"], p["width"], p["d"]) for gated in (False, True)]
        for kind in CONTENTS
    ]
    shares = [
        [law.gate_share(own["d"] // width, own["d"], n) for width in own["widths"]]
        for n in (None, own["positions"])
    ]
    joint, single = zip(*counts, strict=True)
    return {
        "free": xr.Dataset({"joint": ("layer", list(joint)), "single": ("layer", list(single))}),
        "content": xr.Dataset({"bound": (("content", "gates"), bound)}),
        "parameters": xr.Dataset({"token": ("width", shares[0]), "table": ("width", shares[1])}),
    }


def free(n: int, heads: int, width: int, d: int, kind: str, gates: str) -> tuple[float, float]:
    """Open directions of all heads and of the first; a gate of 0 hides one token of that head."""
    if kind == "deficient":
        # Generic of rank q: the rows of the other heads have rank q, too, if there are as many.
        q = min(heads * width, d) - 1
        others = min((heads - 1) * width, q)
    else:
        q = law.output_rank(kind, heads, width, d)
        others = law.output_rank(kind, heads - 1, width, d) if heads > 1 else 0
    hidden = int(gates == "one zero")
    joint = law.open_jointly(n - hidden, heads, width, q)
    joint += law.open_jointly(hidden, heads, width, others)
    return float(joint), float(law.open_alone(n - hidden, width, q, others) + hidden * width)


def content(kind: str, gated: bool, n: int, heads: int, width: int, d: int) -> float:
    """Open directions of heads that are not free."""
    if kind == "shared":
        return float(law.open_shared_content(heads, width, min(n, heads) if gated else 1))
    rank = law.parametric_rank(kind, gated, n, heads, d)
    return float(law.open_parametric(heads, d, width, rank))
