"""Noise correlations by angle: against the series, from step to step, and from rule to rule."""

from itertools import pairwise

import numpy as np

from sims.effects import Effect, Families, of_batches
from sims.estimates import Batches, common, jackknife
from sims.study.results import Results

from .rules import COMPACT, POWERS

KINDS = dict.fromkeys(COMPACT, "fixed") | dict.fromkeys(POWERS, "adaptive")
"""What a rule is; softmax and the gaussian kernel are named by themselves."""


def effects(results: Results) -> Families:
    """Gaps to the series, rises, differences from the gaussian curve, products and floors."""
    predicted = [name for name in results.points if group(results, name) != "few"]
    apart = [
        name
        for name in predicted
        if rule(results, name) != "gaussian" and group(results, name) != "mild"
    ]
    plane = [name for name in predicted if width(results, name) == 2 and "many" in name]
    few = [name for name in results.points if group(results, name) == "few"]
    return {
        "gap to the series": [e for name in predicted for e in gaps(results, name)],
        "rise of the correlation": [e for name in results.points for e in rises(results, name)],
        "difference from the gaussian curve": [
            e for name in apart for e in differences(results, name)
        ],
        "gap of the product": [e for name in plane for e in products(results, name)],
        "gap of the product, theory": [
            e for name in plane for e in products_by_theory(results, name)
        ],
        "floor at few keys": [floor(results, name) for name in few],
    }


def rule(results: Results, name: str) -> str:
    """The rule of a point."""
    return str(results.coordinates[name]["rule"])


def group(results: Results, name: str) -> str:
    """The group of a point."""
    return str(results.coordinates[name]["group"])


def width(results: Results, name: str) -> int:
    """The head width of a point."""
    return int(results.number(name, "width"))


def facts(results: Results, name: str, angle: float) -> dict[str, float | str]:
    """What claims select by."""
    own = rule(results, name)
    return {
        "group": group(results, name),
        "kind": KINDS.get(own, own),
        "compact": float(own in KINDS),
        "empty": "may be" if own in COMPACT else "never",
        "n": results.number(name, "n"),
        "width": float(width(results, name)),
        "angle": angle,
    }


def angles(results: Results, name: str) -> np.ndarray:
    """The angles of a point, in degrees, rising."""
    return results.estimates[name]["angle"].values


def correlations(results: Results, name: str) -> np.ndarray:
    """Pseudo-values (B, angle) of the noise correlation: a ratio of averages over queries."""
    data = results.estimates[name]
    parts = {"pair": data["pair"].values, "own": data["own"].values[:, None]}
    return jackknife(parts, lambda t: t["pair"] / t["own"])


def gaps(results: Results, name: str) -> list[Effect]:
    """The simulated correlation over the series', less 1, at every angle but 0°."""
    theory, values = results.prediction(name), correlations(results, name)
    law, error = theory["law"].values, theory["law_error"].values
    return [
        of_batches(
            f"{name}, {angle:g}°",
            values[:, i] / law[i] - 1,
            name,
            bound=error[i] / law[i],
            at=facts(results, name, angle),
        )
        for i, angle in enumerate(angles(results, name))
        if angle > 0
    ]


def rises(results: Results, name: str) -> list[Effect]:
    """The correlation at an angle less that at the next larger one."""
    values = correlations(results, name)
    return [
        of_batches(
            f"{name}, {b:g}° to {a:g}°",
            values[:, i] - values[:, i + 1],
            name,
            at=facts(results, name, a),
        )
        for i, (a, b) in enumerate(pairwise(angles(results, name)))
    ]


def differences(results: Results, name: str) -> list[Effect]:
    """The correlation less the gaussian kernel's at the same angle, paired."""
    base = f"{group(results, name)}, gaussian, d_k={width(results, name)}"
    own, other = common(*(correlations(results, point) for point in (name, base)))
    return [
        of_batches(
            f"{name}, {angle:g}°",
            own[:, i] - other[:, i],
            (name, base),
            at=facts(results, name, angle),
        )
        for i, angle in enumerate(angles(results, name))
        if angle > 0
    ]


def products(results: Results, name: str) -> list[Effect]:
    """``ρ(c, c)/ρ(c, 0)² − 1`` simulated: ρ is n times the mean of Σ w w'."""
    data, n = results.estimates[name], results.number(name, "n")

    def gap(terms: Batches) -> np.ndarray:
        return terms["pair"] / (n * terms["mixed"] ** 2) - 1

    values = jackknife({part: data[part].values for part in ("pair", "mixed")}, gap)
    return [
        of_batches(f"{name}, {a:g}°", values[:, i], name, at=facts(results, name, a))
        for i, a in enumerate(angles(results, name))
        if 0 < a < 90
    ]


def products_by_theory(results: Results, name: str) -> list[Effect]:
    """The same by the series."""
    theory = results.prediction(name)
    return [
        Effect(
            f"{name}, {a:g}°",
            float(theory["product"][i]),
            bound=float(theory["product_error"][i]),
            at=facts(results, name, a),
        )
        for i, a in enumerate(angles(results, name))
        if 0 < a < 90
    ]


def floor(results: Results, name: str) -> Effect:
    """n times the mean of Σ w w' of orthogonal heads, less 1."""
    values = results.number(name, "n") * results.estimates[name]["pair"].values[:, -1] - 1
    return of_batches(name, values, name, at=facts(results, name, 90.0))
