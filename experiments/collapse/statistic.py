"""Effects of depth on tokens, and recovery of heads: one number per problem."""

import numpy as np
import pandas as pd
import xarray as xr

from sims.base.estimates import falls, ratio
from sims.judgement import conventions
from sims.judgement.effects import Effects, gap, share, sized_outcome
from sims.study.batches import drawn_values, stack_batches
from sims.study.results import Results

from .problems import ALONE, NONE

SOON = 6
"""Layers after which tokens are to be collapsed."""
COLLAPSED = -6.0
"""log₁₀ ρ below which they are."""
NEAR_COLLAPSE = np.log(0.03)
"""log ρ below which tokens are near collapse."""
CUBE = 3.0
"""Ratio of neighbouring steps of log ρ, of attention alone without positions."""
WITHOUT, GATED, SAME_NOISE = range(3)
"""Places of the shares that are lost: the last with gates and the noise that is there without."""


def effects(results: Results) -> dict[str, Effects]:
    """Effects by name; which problems each is put to, the questions' restrictions say."""
    law = results.law
    path = stack_batches(results, "path")
    ends = stack_batches(results, "ends")
    lost = stack_batches(results, "lost")
    theory = law["lost"]
    least = conventions.TOLERANCES["methods"]
    steps = np.diff(path[..., -3:])
    fell = ends[..., 1] - ends[..., 0]
    near = ends[..., 0].mean(1) < NEAR_COLLAPSE
    every = {}
    for limit in conventions.SWEPT:
        margin = lost[..., WITHOUT] - limit
        every[f"lost, {limit:.0%}"] = share(margin, predicted=theory[:, WITHOUT] - limit)
    return {
        **every,
        "soon": share(COLLAPSED - path[..., SOON] / np.log(10)),
        "order": gap(ratio(steps[..., 1], steps[..., 0], axis=1), np.full(len(path), CUBE)),
        "rate": gap(fell / law["depth"][:, None], law["rate"], near),
        "depth": share(conventions.TOLERANCES["slope"] - exponents(ends)),
        "lost": share(lost[..., WITHOUT] - least, predicted=theory[:, WITHOUT] - least),
        "gates": sized_outcome(falls(lost, GATED, WITHOUT)),
        "gates at equal noise": sized_outcome(falls(lost, SAME_NOISE, WITHOUT)),
        "recovered": gap(lost[..., GATED], theory[:, GATED], theory[:, GATED] >= least),
    }


def exponents(ends: np.ndarray) -> np.ndarray:
    """p of ρ ~ L^−p between the depths L and 2L."""
    return (ends[..., 0] - ends[..., 1]) / np.log(2)


def panels(results: Results) -> xr.Dataset:
    """log₁₀ ρ by layer and problem."""
    path = stack_batches(results, "path").mean(1) / np.log(10)
    return xr.Dataset({"path": (("problem", "layer"), path)})


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, n_eff/n of the heads, and by theory the share lost without gates.

    ``collapsing`` tells attention alone with positions (1) from that without (0); NaN of others.
    """
    table = drawn_values(results, "weights", "rate")
    positioned = (table["positions"] != NONE).astype(float)
    return table.assign(
        collapsing=positioned.where(table["block"] == ALONE),
        lost=results.law["lost"][:, WITHOUT],
    )
