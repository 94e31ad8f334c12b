"""What training gains and what the gain is made of; indices and error along its path."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from sims.diversity import correlation, mean_index, normalised_errors, top_index
from sims.effects import Effect, Families, of_batches
from sims.estimates import Batches, jackknife, ratio
from sims.study.results import Results


class Layer(NamedTuple):
    """One kind of layer: its tasks, its value path and its size."""

    stream: str
    values: str
    heads: int
    width: int

    @property
    def point(self) -> str:
        """The name of its point, where layers of all value paths and starts are trained alike."""
        return f"{self.stream}, {self.heads} of {self.width}"

    @property
    def control(self) -> str:
        """The name of the point at which its heads are trained each on its own error."""
        return f"{self.point}, separate"

    @property
    def at(self) -> dict[str, str | float]:
        """Facts that claims select by."""
        return {"values": self.values, "heads": self.heads, "stream": self.stream}


def layers(results: Results) -> Iterator[Layer]:
    """Every kind of layer of the run."""
    settings = results.settings
    for values in settings["values"]:
        for stream in settings["streams"]:
            for heads, width in settings["sizes"]:
                yield Layer(stream, values, heads, width)


def matrices(results: Results, layer: Layer, name: str, start: str = "random") -> np.ndarray:
    """Matrices of the heads of this name at every step looked at, (B, R, C, H, H)."""
    return results.estimates[layer.point][name].sel(values=layer.values, start=start).values


def off_diagonal(matrix: np.ndarray) -> np.ndarray:
    """``Σ_{h≠g} M_hg/H²``: what the pool takes of pairs of heads."""
    return matrix.mean((-2, -1)) - np.trace(matrix, axis1=-2, axis2=-1) / matrix.shape[-1] ** 2


def error(results: Results, layer: Layer, start: str = "random") -> np.ndarray:
    """The layer's mean squared error (B, R, C): the mean of the products of its heads' errors."""
    return matrices(results, layer, "errors", start).mean((-2, -1))


def alone(results: Results, layer: Layer) -> np.ndarray:
    """Mean squared error of the heads one by one, on average, (B, R, C)."""
    products = matrices(results, layer, "errors")
    return np.trace(products, axis1=-2, axis2=-1) / layer.heads


INDICES: dict[str, Callable[[Results, Layer], np.ndarray]] = {
    "subspaces": lambda r, layer: mean_index(matrices(r, layer, "subspaces")),
    "maps": lambda r, layer: mean_index(matrices(r, layer, "maps")),
    "outputs": lambda r, layer: mean_index(correlation(matrices(r, layer, "covariance"))),
    "errors": lambda r, layer: top_index(normalised_errors(matrices(r, layer, "errors"))),
}
"""Index along the path, (B, R, C): the mean index of the subspaces of W_K, of the correlations that
both maps and the temperature lead to by the law of many keys, and of the outputs' correlations; the
spectral one of the errors (their mean index is MSE/v̄, by algebra)."""


def ends(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values before training and after it, means over the seeds of a batch."""
    return values[..., 0].mean(1), values[..., -1].mean(1)


def start_to_end(values: np.ndarray) -> np.ndarray:
    """Rise by training, the mean over the seeds of a batch."""
    start, end = ends(values)
    return end - start


def gain(results: Results, layer: Layer) -> np.ndarray:
    """By how much training lowers the error."""
    return -start_to_end(error(results, layer))


def of_covariance(results: Results, layer: Layer) -> np.ndarray:
    """Share of the gain that is the fall of the covariance between heads."""
    covariance = off_diagonal(matrices(results, layer, "covariance"))
    return ratio(-start_to_end(covariance), gain(results, layer))


def of_ambiguity(results: Results, layer: Layer) -> np.ndarray:
    """Share that is the rise of the ambiguity, the heads' own mean error less the layer's.

    It is 1 − H(1 − p), where p is the share that is the fall of the products of the heads' errors.
    """
    ambiguity = alone(results, layer) - error(results, layer)
    return ratio(start_to_end(ambiguity), gain(results, layer))


def of_index(results: Results, layer: Layer) -> np.ndarray:
    """Share that the rise of the errors' mean index has, heads being as good alone as on average.

    With D = MSE/v̄, v̄ the heads' own mean error, ``ΔMSE = v̄ ΔD + D Δv̄`` where D and v̄ are the
    means of start and end: the first summand is decorrelation, the second are better heads.
    """
    (mse0, mse1), (own0, own1) = ends(error(results, layer)), ends(alone(results, layer))

    def share(m: Batches) -> np.ndarray:
        less = m["mse0"] / m["own0"] - m["mse1"] / m["own1"]
        return less * (m["own0"] + m["own1"]) / 2 / (m["mse0"] - m["mse1"])

    return jackknife({"mse0": mse0, "mse1": mse1, "own0": own0, "own1": own1}, share)


READINGS: dict[str, Callable[[Results, Layer], np.ndarray]] = {
    "covariance": of_covariance,
    "ambiguity": of_ambiguity,
    "index of errors": of_index,
}
"""What a share of the gain may be called decorrelation's: pseudo-values, one a batch."""


def beyond_identical(results: Results, layer: Layer) -> np.ndarray:
    """Share of the gain that a layer of identical heads, trained alike, does not reach."""
    missed = ends(error(results, layer, "identical"))[1] - ends(error(results, layer))[1]
    return ratio(missed, gain(results, layer))


def below_identical(results: Results, layer: Layer, name: str) -> np.ndarray:
    """By how much the trained layer's error or variance is below that of identical heads.

    Relatively; it is the mean of the matrix of this name, "errors" or "covariance".
    """
    own, twins = (
        ends(matrices(results, layer, name, start).mean((-2, -1)))[1]
        for start in ("random", "identical")
    )
    return 1 - ratio(own, twins)


def rise(results: Results, layer: Layer, index: str) -> np.ndarray:
    """Rise of an index by training."""
    return start_to_end(INDICES[index](results, layer))


def above_random(results: Results, layer: Layer) -> np.ndarray:
    """The subspaces' index before training, less theory's for random ones."""
    start, _ = ends(INDICES["subspaces"](results, layer))
    return start - float(results.prediction(layer.point)["subspaces_start"])


def along_the_path(results: Results, layer: Layer, index: str) -> np.ndarray:
    """Minus the rank correlation (Spearman's) of error and index over the steps of a seed."""
    ranks = [rankdata(v, axis=-1) for v in (error(results, layer), INDICES[index](results, layer))]
    a, b = (r - r.mean(-1, keepdims=True) for r in ranks)
    each = np.sum(a * b, -1) / np.sqrt(np.sum(a**2, -1) * np.sum(b**2, -1))
    return -each.mean(1)


def across_seeds(results: Results, layer: Layer, index: str) -> np.ndarray:
    """Minus the correlation of error and index over trained layers; a pseudo-value a batch.

    The error is that over identical heads' of the same seed, which sees the same tasks.
    """
    y = error(results, layer)[..., -1] / error(results, layer, "identical")[..., -1]
    x = INDICES[index](results, layer)[..., -1]
    products = {"x": x, "y": y, "xx": x * x, "yy": y * y, "xy": x * y}
    means = {name: values.mean(1) for name, values in products.items()}

    def minus_correlation(m: Batches) -> np.ndarray:
        spread = (m["xx"] - m["x"] ** 2) * (m["yy"] - m["y"] ** 2)
        return -(m["xy"] - m["x"] * m["y"]) / np.sqrt(spread)

    return jackknife(means, minus_correlation)


def separately_trained(results: Results) -> Iterator[Layer]:
    """Kinds of pooled layers whose heads are trained each on its own error, too."""
    for layer in layers(results):
        if layer.values == "pool" and [layer.heads, layer.width] in results.settings["separate"]:
            yield layer


def after(results: Results, layer: Layer, name: str) -> list[np.ndarray]:
    """Matrices of the heads, (B, R, H, H), after joint training and after separate training."""
    return [
        results.estimates[point][name].sel(values=layer.values, start="random").values[:, :, -1]
        for point in (layer.point, layer.control)
    ]


def parts_further(results: Results, layer: Layer, name: str = "subspaces") -> np.ndarray:
    """A mean index of the heads after joint training less that after separate training."""
    together, apart = (mean_index(m).mean(1) for m in after(results, layer, name))
    return together - apart


def decorrelates_further(results: Results, layer: Layer) -> np.ndarray:
    """Correlation of the heads' errors after separate training less that after joint training.

    The correlation is ``mean_{h≠g} M_hg / mean_h M_hh``, biases included; a pseudo-value a batch.
    """

    def correlations(products: np.ndarray) -> np.ndarray:
        own = np.trace(products, axis1=-2, axis2=-1)
        pairs = (products.sum((-2, -1)) - own) / (layer.heads - 1)
        return ratio(pairs.mean(1), own.mean(1))

    together, apart = (correlations(m) for m in after(results, layer, "errors"))
    return apart - together


def lowers_error(results: Results, layer: Layer) -> np.ndarray:
    """By how much the error after joint training is below that after separate training."""
    together, apart = (m.mean((-2, -1)).mean(1) for m in after(results, layer, "errors"))
    return 1 - ratio(together, apart)


CONTRASTS: dict[str, Callable[[Results, Layer], np.ndarray]] = {
    "joint training parts heads further": parts_further,
    "joint training parts maps further": partial(parts_further, name="maps"),
    "joint training decorrelates errors further": decorrelates_further,
    "joint training lowers the error further": lowers_error,
}
"""Families of joint against separate training, seed by seed: same start, same tasks."""


def effects(results: Results) -> Families:
    """Shares of the gain, rises of indices, and whether the error falls where an index rises."""
    every, controlled = list(layers(results)), list(separately_trained(results))

    def family(
        values: Callable[[Results, Layer], np.ndarray], of: Sequence[Layer] = every
    ) -> list[Effect]:
        return [
            of_batches(
                f"{one.stream}, {one.values}, {one.heads} of {one.width}",
                values(results, one),
                (one.point, one.control) if of is controlled else one.point,
                replicates=error(results, one)[..., 0].size,
                unit="seeds of training",
                at=one.at,
            )
            for one in of
        ]

    return {
        **{f"share of {name}": family(of) for name, of in READINGS.items()},
        "share beyond identical heads": family(beyond_identical),
        "better than identical heads": family(partial(below_identical, name="errors")),
        "less variance than identical heads": family(partial(below_identical, name="covariance")),
        **{f"rise of {name}": family(partial(rise, index=name)) for name in INDICES},
        **{
            f"falls with {name} along the path": family(partial(along_the_path, index=name))
            for name in INDICES
        },
        **{
            f"falls with {name} across seeds": family(partial(across_seeds, index=name))
            for name in INDICES
        },
        **{name: family(contrast, controlled) for name, contrast in CONTRASTS.items()},
        "random start": family(above_random),
    }
