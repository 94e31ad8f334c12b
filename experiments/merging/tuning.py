"""The temperatures that a user would tune, by a pilot simulation with separate draws."""

from dataclasses import replace

import numpy as np

from sims.montecarlo import Draw
from sims.montecarlo.draws import PILOT
from sims.study.study import Fields

from .heads import errors_of
from .problems import Problem

SEQUENCES = 48
"""Sequences of the pilot."""
GRID = 2.0 ** (np.arange(15) / 2 - 4)
"""Bandwidths that are tried, over the drawn one: temperatures from 1/256 to 64 times as high."""


def problem(fields: Fields) -> Problem | None:
    """The problem at its tuned temperatures; None if that of all keys or of slots is an end.

    Heads that are best at an end attend to one key or to all, and merging is no question of them.
    """
    untuned = Problem(fields)
    bandwidths = untuned.bandwidth * GRID
    draw = Draw.from_seed(fields["pilot"], (), SEQUENCES).draw(PILOT)
    terms = errors_of(untuned, draw.key, SEQUENCES, [bandwidths] * 3)
    places = terms["mse"].to_numpy().reshape(3, -1).argmin(1)
    if places[:2].min() == 0 or places[:2].max() == len(GRID) - 1:
        return None
    selectivity = float(terms["n_eff"].iloc[places[0]] / fields["keys"])
    return replace(untuned, tuned=tuple(map(float, bandwidths[places])), selectivity=selectivity)
