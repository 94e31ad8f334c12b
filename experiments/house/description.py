"""A problem of the house in words and numbers: its row of the population, and its file."""

from typing import Any

import numpy as np

from sims.study.problem import explicit_problem

from .decomposition import ACCURACY, MOST_HEADS
from .problems import Problem
from .sets import COMMON, HAAR, HALF_ALIGNED, OWN_BEST, THIRD

LEFT_OUT = ("size", "frames", "query_frames", "design", "target", "sharpness", "queries", "pilot")
"""Fields that the population leaves out: seeds, and the size, of which it has each number."""


def population(problem: Problem) -> dict[str, Any]:
    """What a problem is: drawn fields, sizes, and what the pilot measured, each a number or word.

    ``selectivity`` is n_eff/n of the ladder's Haar set as drawn, a mean over heads; ``beats`` says
    whether the average of random heads errs less than both baselines on the pilot.
    """
    drawn = {k: v for k, v in problem.fields.items() if k not in LEFT_OUT}
    dimension, heads, width = problem.fields["size"]
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
        "ridge": problem.ridge,
        "full_head": problem.full_head,
        "rival": problem.rival,
        "rival_index": problem.index[THIRD] - problem.index[HAAR],
        "beats": min(problem.ridge, problem.full_head) > 1,
        "edge": problem.edge,
        "equal": problem.equal,
        "diversity": problem.index[HAAR],
        "n_eff": problem.keys.mean(),
        "n_eff_spread": problem.keys.std(),
        "selectivity": problem.keys.mean() / problem.n,
    }


def described(problem: Problem) -> dict[str, Any]:
    """A problem as ``sims decompose`` and ``sims sweep`` read it: a Haar set, or every set.

    The Haar set is the ladder's. Every set has its own best temperature, and 16 queries are asked.
    """
    fields = problem.fields
    heads = {
        "count": problem.heads,
        "width": fields["size"][2],
        "frames": explicit_frames(problem.query_frames[HAAR]),
        "kernel": fields["kernel"],
        "bandwidth": problem.bandwidth[HAAR, COMMON].tolist(),
    }
    if fields["apart"]:
        heads["key_frames"] = explicit_frames(problem.key_frames[HAAR])
    sets = []
    for place, index in enumerate(problem.index[:HALF_ALIGNED]):
        label = {"label": f"set {place}, diversity index {index:.2f}"}
        of_set = {"heads.frames": label | explicit_frames(problem.query_frames[place])}
        bandwidth = problem.bandwidth[place, OWN_BEST].tolist()
        of_set["heads.bandwidth"] = {"label": f"set {place}", "value": bandwidth}
        if fields["apart"]:
            of_set["heads.key_frames"] = label | explicit_frames(problem.key_frames[place])
        sets.append(of_set)
    queries = np.concatenate([problem.queries(batch) for batch in range(2)])
    facts = population(problem)
    about = (
        f"Problem {problem.number}: d = {facts['dimension']}, H = {facts['heads']}, "
        f"d_k = {facts['width']}, n = {facts['keys']}, keys: {fields['family']}, "
        f"kernel: {fields['kernel']}; random heads at the common temperature have "
        f"n_eff/n = {facts['selectivity']:.3f} and, by the pilot, a skill of {problem.skill:.2f}; "
        f"label noise over the target's variance is {fields['noise_ratio']:.2f}."
    )
    few = problem.heads <= MOST_HEADS
    return {
        "about": about,
        "theory": {"order": "exact", "rtol": ACCURACY} if few else {"order": "none"},
        "problem": explicit_problem(
            problem.target, problem.noise_sd, heads, problem.n, queries, problem.law.as_design()
        ),
        "simulation": {"batches": 64, "replicates_per_batch": 64},
        "sweep": {"list": sets},
    }


def explicit_frames(frames: np.ndarray) -> dict[str, Any]:
    """Frames (H, d, d_k) as a file has them."""
    return {"kind": "explicit", "frames": frames.tolist()}
