"""The regimes: for each, the same problem with one set of heads after another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sims.problem import GaussianDesign, Kernel, Target, TrigonometricSeries
from sims.study.experiment import Experiment
from sims.study.specification import ProblemSpec
from sims.validation import parse

SIXTEEN = [
    (definition, version)
    for version in ("noise", "signal", "total", "geometric")
    for definition in ("mean", "top", "entropy", "participation")
]
"""The candidates that a counterexample may have to beat all of: definition and version."""


EACH = "{}, target by target"
"""Name of the point at which a regime's targets are drawn, one a batch."""

DRAWN = "{}, frames drawn"
"""Name of the point at which a regime's frames are drawn, several sets a batch."""


class Regime(NamedTuple):
    """A regime's configurations as arrays, and what is drawn anew with every query set.

    Attributes:
        labels: of the C configurations.
        frames: of their heads, (C, H, d, d_k).
        covariance: of the keys, (C, d, d).
        kernel: of all heads.
        bandwidth: of every head, (H,).
        target: m, where it is fixed.
        lengthscale: of the squared-exponential law of m where it is drawn; None where m is fixed.
        law: from a seed to a target of the family that m is from, where targets are also judged one
            after another; None elsewhere.
        seen: 1 for a coordinate in which queries vary, 0 for one in which they are 0; (d,).
        n: keys.
        noise_sd: σ.
        scale: standard deviation of the queries' coordinates.
    """

    labels: tuple[str, ...]
    frames: Array
    covariance: Array
    kernel: Kernel
    bandwidth: Array
    target: TrigonometricSeries
    lengthscale: float | None
    law: Callable[..., Target] | None
    seen: np.ndarray
    n: int
    noise_sd: Array
    scale: float


def regimes(experiment: Experiment) -> dict[str, Regime]:
    """Every regime of the listed configurations, by its name."""
    return _built(experiment, experiment.settings["regimes"])


def with_drawn_frames(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the regimes whose frames are drawn, by name: beside the list, or alone."""
    beside = {name: own for name, own in settings["regimes"].items() if own.get("drawn_frames")}
    return beside | settings["drawn_frames_alone"]


def drawn_regimes(experiment: Experiment) -> dict[str, Regime]:
    """Every regime whose frames are drawn, several sets a batch, by its name."""
    return _built(experiment, with_drawn_frames(experiment.settings))


def _built(experiment: Experiment, chosen: Mapping[str, Any]) -> dict[str, Regime]:
    base, heads = experiment.spec.problem or {}, experiment.settings["configurations"]
    return {
        name: regime(name, {**base, **own.get("problem", {})}, own, heads)
        for name, own in chosen.items()
    }


def regime(
    name: str, base: Mapping[str, Any], own: Mapping[str, Any], heads: Sequence[Mapping[str, Any]]
) -> Regime:
    """A problem with one configuration after another: its own ``designs``, or frames of heads."""
    labels, frames, covariances = [], [], []
    for each in own.get("designs", heads):
        label, part = each["label"], {k: v for k, v in each.items() if k != "label"}
        one = {"design": part} if "designs" in own else {"heads": {**base["heads"], "frames": part}}
        spec = parse(ProblemSpec, {**base, **one}, f"{name}, {label}")
        task, first, n, _ = spec.build()
        assert isinstance(task.design, GaussianDesign)  # for the type checker
        labels.append(label)
        frames.append(first.frames)
        covariances.append(task.design.covariance)
    assert isinstance(task.target, TrigonometricSeries)  # for the type checker
    return Regime(
        tuple(labels),
        jnp.stack(frames),
        jnp.stack(covariances),
        first.kernel,
        first.bandwidth,
        task.target,
        base["target"]["lengthscale"] if own.get("drawn") else None,
        spec.family() if own.get("each") else None,
        (np.arange(task.dimension) < base["dimension"]).astype(float),
        n,
        task.noise_sd,
        base["queries"]["scale"],
    )
