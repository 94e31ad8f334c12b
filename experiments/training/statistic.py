"""Effects of training together, one number a problem: what parts, what is gained, and why."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from sims.base.estimates import Batches, jackknife
from sims.judgement.effects import Effects
from sims.judgement.effects_of_problems import of_batches
from sims.study.results import Results

GAIN = 5.0
"""Standard errors from which something is gained: below there are no shares of it."""
CONTROLS = ("identical", "separate", "start")
READINGS: dict[str, Callable[[Batches, Batches], np.ndarray]] = {
    "covariance": lambda before, after: before["covariance"] - after["covariance"],
    "ambiguity": lambda before, after: (
        after["alone"] - after["mse"] - (before["alone"] - before["mse"])
    ),
    "index of errors": lambda before, after: (
        (before["mse"] / before["alone"] - after["mse"] / after["alone"])
        * (before["alone"] + after["alone"])
        / 2
    ),
}
"""What may be called decorrelation's part of a fall of the error: of the heads' covariance; the
rise of the ambiguity; and, with ``MSE = v̄ D`` of heads that have the error v̄ alone, the fall of D
at the mean v̄."""
Measured = Mapping[str, Mapping[str, np.ndarray]]


def measured(results: Results) -> Measured:
    """What was measured of each layer: layer to name to values (N, seeds)."""
    points = list(results.estimates.values())
    names = [k for k, v in points[0].data_vars.items() if "replicate" in v.dims]
    return {
        str(layer): {
            str(name): np.concatenate([data[name].sel(layer=layer).values for data in points])
            for name in names
        }
        for layer in points[0]["layer"].values
    }


def share(measures: Measured, control: str, reading: str) -> np.ndarray:
    """A reading's share of the gain of joint training over a control: pseudo-values (N, seeds)."""
    layers = (control, "joint")
    batches = {
        f"{layer} {name}": measures[layer][name].T
        for layer in layers
        for name in ("mse", "alone", "covariance")
    }

    def statistic(means: Batches) -> np.ndarray:
        before, after = (
            {key.split()[1]: value for key, value in means.items() if key.startswith(layer)}
            for layer in layers
        )
        return READINGS[reading](before, after) / (before["mse"] - after["mse"])

    return jackknife(batches, statistic).T


def effects(results: Results) -> dict[str, Effects]:
    """Every question's effects, and the shares that the figure has."""
    layers = measured(results)
    joint = layers["joint"]
    made = {
        name: of_batches(joint[name] - layers["separate"][name])
        for name in ("subspaces", "outputs")
    }
    made["variance"] = of_batches(layers["identical"]["variance"] - joint["variance"])
    for control in CONTROLS:
        gain = of_batches(layers[control]["mse"] - joint["mse"])
        made[f"gain over {control}"] = gain
        for reading in READINGS:
            values = share(layers, control, reading)
            values[gain.value < GAIN * gain.error] = np.nan
            made[f"{reading} over {control}"] = of_batches(values, kind="estimate")
            made[f"{reading} over {control}, more than half"] = of_batches(values - 0.5)
    return made


def parameters(results: Results) -> pd.DataFrame:
    """What the law drew, a row a problem."""
    return results.predictions["law"].to_dataframe().drop(columns="noise_sd")
