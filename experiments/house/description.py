"""A problem of the house in words and numbers: its row of the population, and its file."""

from typing import Any

import numpy as np

from .keys import GAUSSIAN
from .problems import Problem
from .sets import COMMON, HAAR, OWN_BEST

LEAST_KEYS = 50
"""Effective keys below which the file of a problem asks for no theory: it is out of its range."""


def population(problem: Problem) -> dict[str, Any]:
    """What a problem is: drawn fields, sizes, and what the pilot measured, each a number or word.

    ``selectivity`` is n_eff/n of the first Haar set at the common temperature, a mean over heads.
    """
    seeds = {"frames", "query_frames", "design", "target", "sharpness", "queries", "pilot"}
    drawn = {k: v for k, v in problem.fields.items() if k not in seeds and k != "size"}
    dimension, heads, width = problem.fields["size"]
    keys = problem.keys[HAAR, COMMON]
    return drawn | {
        "keys": problem.n,
        "dimension": dimension,
        "heads": heads,
        "width": width,
        "full": heads * width == dimension,
        "fits": problem.fits,
        "target_variance": problem.variance,
        "noise_sd": problem.noise_sd,
        "skill": problem.skill,
        "edge": problem.edge,
        "n_eff": keys.mean(),
        "n_eff_spread": keys.std(),
        "selectivity": keys.mean() / problem.n,
        "own_selectivity": ("set", problem.keys[:, OWN_BEST].mean(-1) / problem.n),
        "index": ("set", problem.index),
    }


def described(problem: Problem) -> dict[str, Any]:
    """A problem as ``sims decompose`` and ``sims sweep`` read it: the first Haar set, or every set.

    At the common temperature and 16 of its queries.
    """
    fields, dimension = problem.fields, problem.law.dimension
    series = {
        name: np.asarray(getattr(problem.target, name)).tolist()
        for name in ("amplitude", "frequency", "phase")
    }

    def frames(arrays: np.ndarray) -> list[dict[str, Any]]:
        sets = zip(arrays, problem.index, strict=True)
        return [
            {
                "label": f"set {place}, diversity index {index:.2f}",
                "kind": "explicit",
                "frames": array.tolist(),
            }
            for place, (array, index) in enumerate(sets)
        ]

    queries, keys = frames(problem.query_frames), frames(problem.key_frames)
    heads = {
        "count": problem.heads,
        "width": fields["size"][2],
        "frames": _explicit(queries[HAAR]),
        "kernel": fields["kernel"],
        "bandwidth": problem.bandwidth[HAAR, COMMON].tolist(),
    }
    places = [{"heads.frames": frames} for frames in queries]
    if fields["apart"]:
        heads["key_frames"] = _explicit(keys[HAAR])
        for place, key_frames in zip(places, keys, strict=True):
            place["heads.key_frames"] = key_frames
    asked = np.concatenate([problem.queries(batch) for batch in range(2)])
    facts = population(problem)
    about = (
        f"Problem {problem.number}: d = {dimension}, H = {problem.heads}, d_k = {facts['width']}, "
        f"n = {problem.n}, keys: {problem.law.family}, kernel: {fields['kernel']}; random heads at "
        f"the common temperature have n_eff/n = {facts['selectivity']:.3f} and, by the pilot, a "
        f"skill of {problem.skill:.2f}; label noise over the target's variance is "
        f"{fields['noise_ratio']:.2f}."
    )
    few = facts["n_eff"] < LEAST_KEYS or problem.law.family not in GAUSSIAN
    return {
        "about": about,
        "theory": {"order": "none" if few else "first"},
        "problem": {
            "dimension": dimension,
            "design": problem.law.as_design(),
            "target": {"kind": "explicit", **series},
            "noise_sd": float(problem.noise_sd),
            "heads": heads,
            "n": problem.n,
            "queries": {"kind": "explicit", "count": len(asked), "points": asked.tolist()},
        },
        "simulation": {"batches": 64, "replicates_per_batch": 64},
        "sweep": {"list": places},
    }


def _explicit(frames: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in frames.items() if name != "label"}
