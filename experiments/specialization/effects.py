"""Diversity before and after learning, and what the held-out gain is made of."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from sims.effects import Effect, Families, of_batches
from sims.estimates import ratio
from sims.study.results import Results

STREAMS = ("noise", "single", "additive", "isotropic")
READINGS = {
    "covariance": "cross",
    "ambiguity": "agreement",
}
"""Readings of `decorrelation` to the part of the error whose fall it is.

That of the products of errors, a share p, is no third one: the ambiguity's is 1 − H(1 − p).
"""
PARTS = {"squared_bias": "squared bias", "own": "own variance", "cross": "covariance of heads"}
Road = Callable[[Results, str, str, str], np.ndarray]


def effects(results: Results) -> Families:
    """Rises of diversity, shares of the gain, what a penalty does, and both roads' gaps."""
    plain = {stream: f"{stream}, plain" for stream in streams(results)}
    gaps = [(point, state) for point in results.points for state in ("before", "after")]
    return {
        "diversity rises": [
            of_seeds(stream, rise(results, point), point) for stream, point in plain.items()
        ],
        **{
            f"share of {reading}": [
                of_seeds(stream, share(results, point, part, simulated), point)
                for stream, point in plain.items()
            ]
            for reading, part in READINGS.items()
        },
        "learned weights rise further": [
            of_seeds(
                "additive",
                rise(results, "additive, weights") - rise(results, "additive, plain"),
                "additive, weights", "additive, plain",
            )
        ],
        "penalty lowers the error": [
            of_seeds(stream, fall(results, stream), point, f"{stream}, penalty")
            for stream, point in plain.items()
        ],
        "share by both roads": [
            of_seeds(
                f"{stream}, {reading}",
                share(results, point, part, simulated) - share(results, point, part),
            )
            for stream, point in plain.items()
            for reading, part in READINGS.items()
            if stream != "noise" or reading == "covariance"
        ],
        "error by both roads": [
            of_seeds(f"{point}, {state}", error_gap(results, point, state))
            for point, state in gaps
        ],
    }  # fmt: skip


def of_seeds(label: str, values: np.ndarray, *points: str) -> Effect:
    """The mean over learning seeds, which are the batches.

    Without points where theory's seeds, as many as the file says, limit the effect.
    """
    stream = label.split(",")[0]
    return of_batches(
        label, values, points, replicates=len(values), unit="learning seeds", at={"stream": stream}
    )


def streams(results: Results) -> list[str]:
    """The streams of this run."""
    return [stream for stream in STREAMS if f"{stream}, plain" in results.points]


def rise(results: Results, point: str) -> np.ndarray:
    """Rise of the diversity index, one a seed."""
    data = results.estimates[point]
    return data["hdi_after"].values - data["hdi"].values[:, 0]


def predicted(results: Results, point: str, part: str, state: str) -> np.ndarray:
    """A part of the error, or the whole ``mse``, by theory; one a seed."""
    data = results.prediction(point)
    whole = np.sum([data[f"{p}_{state}"].values for p in PARTS], axis=0)
    return _part(data.assign({f"mse_{state}": ("seed", whole)}), part, state)


def simulated(results: Results, point: str, part: str, state: str) -> np.ndarray:
    """The same by simulation."""
    return _part(results.estimates[point], part, state)


def _part(data: xr.Dataset, part: str, state: str) -> np.ndarray:
    """A part that is there, or that follows.

    ``agreement`` is the heads' own errors taken from the ensemble's: minus the ambiguity.
    """
    derived = {
        "squared_bias": ("mse", "own", "cross"),
        "agreement": ("mse", "heads_error"),
    }
    if f"{part}_{state}" in data:
        return data[f"{part}_{state}"].values
    whole, *rest = (data[f"{p}_{state}"].values for p in derived[part])
    return whole - sum(rest)


def share(results: Results, point: str, part: str, road: Road = predicted) -> np.ndarray:
    """Share of the gain that is the fall of one part, by a road; a pseudo-value a seed."""
    fell, gain = (
        road(results, point, p, "before") - road(results, point, p, "after") for p in (part, "mse")
    )
    return ratio(fell, gain)


def fall(results: Results, stream: str) -> np.ndarray:
    """By how much the penalty lowers the simulated error after learning, over that without."""
    without, with_ = (
        results.estimates[f"{stream}, {variant}"]["mse_after"].values
        for variant in ("plain", "penalty")
    )
    return (without - with_) / without.mean()


def error_gap(results: Results, point: str, state: str) -> np.ndarray:
    """Simulated held-out error less theory's, over theory's mean."""
    expected = predicted(results, point, "mse", state)
    return (simulated(results, point, "mse", state) - expected) / expected.mean()
