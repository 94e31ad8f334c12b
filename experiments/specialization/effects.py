"""Diversity before and after learning, what the held-out gain is made of, and why heads part."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from sims.effects import Effect, Families, of_batches
from sims.estimates import ratio
from sims.study.results import Results

from .courses import NOISY

STREAMS = ("noise", "single", "additive", "isotropic")
READINGS = {
    "covariance": "cross",
    "ambiguity": "agreement",
}
"""Readings of `decorrelation` to the part of the error whose fall it is.

That of the products of errors, a share p, is no third one: the ambiguity's is 1 − H(1 − p).
"""
TRAINED = {"": "plain", ", much noise": NOISY, ", random start": "random"}
"""What marks families of shares to the variant whose heads they are about."""
PARTS = {"squared_bias": "squared bias", "own": "own variance", "cross": "covariance of heads"}
CONTROLS = {"aligned": ("plain", "separate"), "random": ("random", "random separate")}
"""Start of the heads to the variants that learn from it: on their joint error, each on its own."""
Road = Callable[[Results, str, str, str], np.ndarray]


def effects(results: Results) -> Families:
    """Rises of diversity, shares of the gain, joint against separate training, roads' gaps."""
    plain = {stream: f"{stream}, plain" for stream in streams(results)}
    gaps = [(point, state) for point in results.points for state in ("before", "after")]
    return {
        "diversity rises": [
            of_seeds(stream, rise(results, point), point) for stream, point in plain.items()
        ],
        **{
            f"share of {reading}{mark}": [
                of_seeds(stream, share(results, point, part, simulated), point)
                for stream in streams(results, variant)
                for point in [f"{stream}, {variant}"]
            ]
            for reading, part in READINGS.items()
            for mark, variant in TRAINED.items()
        },
        "learned weights rise further": [
            of_seeds(
                "additive",
                rise(results, "additive, weights") - rise(results, "additive, plain"),
                "additive, weights",
                "additive, plain",
            )
        ],
        "penalty lowers the error": [
            of_seeds(stream, fall(results, stream), point, f"{stream}, penalty")
            for stream, point in plain.items()
        ],
        **{
            family: [
                of_seeds(
                    f"{stream}, {start} start",
                    contrast(results, stream, start),
                    *(f"{stream}, {variant}" for variant in CONTROLS[start]),
                    start=start,
                )
                for start in starts(results)
                for stream in plain
            ]
            for family, contrast in CONTRASTS.items()
        },
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
            of_seeds(
                f"{point}, {state}",
                error_gap(results, point, state),
                variance_share=variance_share(results, point, state),
            )
            for point, state in gaps
        ],
    }


def of_seeds(label: str, values: np.ndarray, *points: str, **at: str | float) -> Effect:
    """The mean over learning seeds, which are the batches.

    Without points where theory's seeds, as many as the file says, limit the effect.
    """
    facts = {"stream": label.split(",")[0], **at}
    return of_batches(
        label, values, points, replicates=len(values), unit="learning seeds", at=facts
    )


def streams(results: Results, variant: str = "plain") -> list[str]:
    """The streams of this run on which heads are trained so."""
    return [stream for stream in STREAMS if f"{stream}, {variant}" in results.points]


def starts(results: Results) -> list[str]:
    """The starts from which this run's heads learn under both objectives."""
    known = results.settings["variants"]
    return [start for start, pair in CONTROLS.items() if all(one in known for one in pair)]


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


def variance_share(results: Results, point: str, state: str) -> float:
    """Share of the variance in the error, by theory."""
    own, cross, whole = (
        predicted(results, point, part, state).mean() for part in ("own", "cross", "mse")
    )
    return float((own + cross) / whole)


def parts_further(results: Results, stream: str, start: str) -> np.ndarray:
    """The diversity index after joint training less that after separate training, one a seed."""
    together, apart = _after(results, stream, start, "hdi_after")
    return together - apart


def decorrelates_further(results: Results, stream: str, start: str) -> np.ndarray:
    """Correlation of the heads' errors after separate training less that after joint training.

    The correlation is ``mean_{h≠g} M_hg / mean_h M_hh``, M_hg the mean product of the errors of two
    heads on held-out tasks, biases included. With uniform weights the error of the average is
    ``(mean_h M_hh + (H − 1) mean_{h≠g} M_hg)/H``, so it is ``(H MSE/mean_h M_hh − 1)/(H − 1)``. A
    pseudo-value a seed.
    """
    heads = results.settings["heads"]["count"]
    errors, own = (
        _after(results, stream, start, f"{part}_after") for part in ("mse", "heads_error")
    )
    together, apart = (
        (heads * ratio(error, alone) - 1) / (heads - 1)
        for error, alone in zip(errors, own, strict=True)
    )
    return apart - together


def lowers_error(results: Results, stream: str, start: str) -> np.ndarray:
    """By how much the error after joint training is below that after separate training, relatively.

    A pseudo-value a seed.
    """
    together, apart = _after(results, stream, start, "mse_after")
    return 1 - ratio(together, apart)


def _after(results: Results, stream: str, start: str, name: str) -> list[np.ndarray]:
    """A simulated number after joint and after separate training, each (seeds,)."""
    return [results.estimates[f"{stream}, {variant}"][name].values for variant in CONTROLS[start]]


CONTRASTS: dict[str, Callable[[Results, str, str], np.ndarray]] = {
    "joint training parts heads further": parts_further,
    "joint training decorrelates errors further": decorrelates_further,
    "joint training lowers the error further": lowers_error,
}
"""Families of joint against separate training, seed by seed: same start, same tasks."""
