"""The whole splits of a regime at its n and D: errors, the best of them, and a file that runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sims.study.problem import explicit_problem

from .exact import exact_curve
from .grids import splits
from .problems import Curve, Drawn, curve, draw_task


def drawn_curve(drawn: Drawn) -> tuple[Curve, bool]:
    """Errors of every width at the drawn n and D, and whether they are exact.

    They are where first order leaves the comparison of splits open.
    """
    first = curve(drawn, drawn["keys"], drawn["budget"])
    widths = splits(drawn["budget"])
    if len(widths) < 3:
        return first, False
    compared = compare_splits(first.error[0, widths - 1], first.known[0, widths - 1])
    if compared["known"]:
        return first, False
    return exact_curve(drawn, drawn["keys"], drawn["budget"], widths, np.inf), True


def compare_splits(error: np.ndarray, known: np.ndarray) -> dict[str, float | int | bool]:
    """The best inner split against the better end: heads of dimension 1, or one head.

    ``margin`` is the share by which the inner split errs less, negative if the end does;
    ``known`` whether the end, and the better of the two with its neighbours, are in theory's range;
    ``inner`` and ``end`` are places among the splits.

    Args:
        error: of every whole split, (S,), by width.
        known: whether theory is in its range there, (S,).
    """
    inner = int(error[1:-1].argmin()) + 1
    end = 0 if error[0] < error[-1] else len(error) - 1
    better = inner if error[inner] < error[end] else end
    around = known[max(better - 1, 0) : better + 2]
    return {
        "margin": 1 - error[inner] / error[end],
        "known": bool(known[end] and around.all()),
        "inner": inner,
        "end": end,
    }


def describe_regime(drawn: Drawn, seed: Sequence[int]) -> dict[str, Any]:
    """A regime at the best of its whole splits, and a sweep of all, as ``sims sweep`` reads it.

    With one target and its queries, of that seed.
    """
    target, queries = draw_task(drawn, np.random.default_rng(seed))
    curves = drawn_curve(drawn)[0]
    widths = splits(drawn["budget"])
    design = {"kind": "redundant_views", "noise": drawn["view_noise"]}
    if drawn["decay"] == "even":
        design = {"kind": "isotropic"}
    ensembles = []
    changes = []
    for width in widths.tolist():
        count = drawn["budget"] // width
        bandwidth = float(curves.bandwidth[0, width - 1])
        heads: dict[str, Any] = {"count": count, "width": width, "bandwidth": bandwidth}
        change = {f"heads.{name}": value for name, value in heads.items()}
        if drawn["decay"] == "even":
            blocks = np.eye(target.dimension, count * width).reshape(-1, count, width)
            heads["frames"] = {"kind": "explicit", "frames": blocks.swapaxes(0, 1).tolist()}
            change["heads.frames"] = {"label": str(count), **heads["frames"]}
        ensembles.append(heads)
        changes.append(change)
    best = ensembles[int(curves.error[0, widths - 1].argmin())]
    heads = {"kernel": drawn["kernel"], **best}
    problem = explicit_problem(target, drawn["noise_sd"], heads, drawn["keys"], queries, design)
    return {"problem": problem, "sweep": {"list": changes}}
