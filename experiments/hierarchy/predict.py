"""What theory says of costs, counts, probabilities, tails, bounds and mixtures of levels."""

from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from sims.problem import DESIGNS, Heads, Task
from sims.problem.targets import TrigonometricSeries
from sims.study.experiment import Experiment
from sims.theory import predict as theory
from sims.theory.neighbours import hierarchy

ARMS = ("scores", "outputs", "single")


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """By the names of the points that theory says something of."""
    settings = experiment.settings
    laws: dict[str, xr.Dataset] = {}
    for tokens in settings["tokens"]:
        for width in settings["width"]:
            for levels in settings["levels"]:
                counts = hierarchy.pair_count(width, levels)
                names = ("pairs", "symmetric pairs", "antisymmetric pairs")
                laws[f"T={tokens} d={width} L={levels}"] = xr.Dataset(
                    dict(zip(names, counts, strict=True))
                )
    for tokens in settings["cost"]["tokens"]:
        for levels in settings["cost"]["levels"]:
            for ratio in settings["cost"]["ratio"]:
                laws[f"cost T={tokens} L={levels} T/d={ratio}"] = xr.Dataset(
                    {
                        "score_cost": hierarchy.relative_cost(levels),
                        "rounded": hierarchy.relative_cost_rounded(tokens, levels),
                        "layer_cost": hierarchy.relative_layer_cost(
                            tokens / int(tokens / ratio), levels
                        ),
                    }
                )
    for width, head_width in settings["semidefinite"]["sizes"]:
        laws[f"semidefinite d={width} d_k={head_width}"] = xr.Dataset(
            {
                "one": hierarchy.psd_probability(width, head_width),
                "two": hierarchy.psd_probability(width, head_width, 2),
            }
        )
    truncation = settings["truncation"]
    kept = np.arange(1, truncation["kept"] + 1)
    for name, spectrum in truncation["spectra"].items():
        tails = [hierarchy.tail_weight(spectrum, int(one)) for one in kept]
        laws[f"truncation, {name}"] = xr.Dataset({"tail": ("kept", tails)}, {"kept": kept})
    own = settings["ranks"]
    moments = hierarchy.token_moments(own["taps"], own["tokens"], len(own["weights"]))
    sizes = own["decay"] ** np.arange(own["width"])
    for rank in own["kept"]:
        law = hierarchy.rank_error(own["weights"], sizes, rank, moments)
        laws[f"ranks, d_k={rank}"] = xr.Dataset({"squared": law})
    shortfall = bounds(settings["mixture"])
    for name, regime in settings["mixture"]["regimes"].items():
        laws[f"mixture, {name}"] = mixture(settings["mixture"] | regime).assign(shortfall)
    return laws


def mixture(settings: dict[str, Any]) -> xr.Dataset:
    """Exact squared bias, variance and error of the three arms, where keys are normal."""
    weights, h = np.array(settings["weights"]), np.array(settings["bandwidths"], float)
    width = settings["width"]
    pairs = [*pairwise(range(len(h))), (0, len(h) - 1)]
    one, other = (h[[pair[k] for pair in pairs]] for k in (0, 1))
    law = hierarchy.noise_correlation(one, other, width)
    whole = xr.Dataset({"correlation": ("pair", law)})
    if settings["keys"] != "gaussian":
        return whole
    wave = TrigonometricSeries([1.0], [[settings["frequency"], *[0.0] * (width - 1)]], [0.0])
    task = Task(DESIGNS["isotropic"](width), wave, settings["noise_sd"])
    queries = np.array(settings["queries"], float)[:, :width]
    mean = hierarchy.output_mixture(weights, h, width)[0] ** 0.5
    alone = hierarchy.score_mixture_bandwidth(weights, h)
    alike = np.ones(1)
    cases = {
        "scores": (alone * alike, alike),
        "outputs": (h, weights),
        "single": (mean * alike, alike),
    }
    rows: dict[str, list[float]] = {"squared_bias": [], "variance": [], "mse": []}
    for own, share in cases.values():
        frames = np.stack([np.eye(width)] * len(own))
        data = theory(
            task,
            Heads(frames, "gaussian", own),
            settings["n"],
            queries,
            order="exact",
            rtol=1e-5,
        )
        a = share
        bias = data["bias"].values @ a
        covariance = data["signal_covariance"].values + data["noise_covariance"].values
        spread = np.einsum("h,qhg,g->q", a, covariance, a)
        rows["squared_bias"].append(float(np.mean(bias**2)))
        rows["variance"].append(float(np.mean(spread)))
        rows["mse"].append(float(np.mean(bias**2 + spread)))
    return whole.assign({k: ("arm", v) for k, v in rows.items()}).assign_coords(arm=list(ARMS))


def bounds(settings: dict[str, Any]) -> dict[str, Any]:
    """Largest shortfall of λᵀCλ below one bandwidth of the same h̄, over drawn λ, h and d_k.

    Of convex weights, and of weights that may be negative (sum 1, h̄² > 0), by number of levels.
    """
    search = settings["search"]
    rng = np.random.default_rng(search["seed"])
    found = np.zeros((2, len(search["levels"])))
    for place, levels in enumerate(search["levels"]):
        for _one in range(search["draws"]):
            h, width = np.exp(rng.normal(size=levels)), int(rng.integers(1, 9))
            convex, any_sign = rng.dirichlet(np.ones(levels)), rng.normal(size=levels)
            for row, share in enumerate((convex, any_sign / any_sign.sum())):
                square, functional = hierarchy.output_mixture(share, h, width)
                if square > 0:
                    short = 1 - functional / hierarchy.single_variance(square, width)
                    found[row, place] = max(found[row, place], short)
    return {name: ("search", found[row]) for row, name in enumerate(("convex", "signed"))}
