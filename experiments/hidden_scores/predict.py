"""What theory says: variances, keys, ranks, recursions, late rates, and the second layer's head."""

from typing import Any

import numpy as np
import xarray as xr

from sims.problem import DESIGNS, Heads, Task
from sims.problem.targets import TrigonometricSeries
from sims.study.experiment import Experiment
from sims.theory import predict as theory
from sims.theory.neighbours import hidden

STARTS: tuple[hidden.Start, ...] = ("zero", "copy")
LAYERS = ("layer", "start", "memory")
FAR = 96
"""Layers of the recursion that limits in depth are read off."""
LEAST = 1e-290
"""Sizes below are not read: numbers lose digits there."""


def predict(experiment: Experiment) -> dict[str, xr.Dataset]:
    """By the names of the points that theory says something of."""
    settings = experiment.settings
    memory = np.array(settings["memory"], float)
    laws: dict[str, xr.Dataset] = {}
    for regime in settings["stacks"]:
        own = settings["stack"] | regime
        if own["part"] == "late":
            rate = hidden.normed_rate if own["norm"] else hidden.late_rate
            laws[own["name"]] = xr.Dataset(
                {"rate": rate(own["d"], 1.0, own["skip"])},
            )
        elif own["part"] == "pure":
            laws[own["name"]] = xr.Dataset(
                {"second_difference": ("memory", _logs(memory))}, {"memory": memory}
            )
    for n in settings["simplex"]["n"]:
        for scale in settings["simplex"]["score_scale"]:
            laws[f"simplex n={n} β={scale}"] = simplex(settings["simplex"], n, scale, memory)
    laws["identities"] = xr.Dataset(
        {
            f"ratio, {start}": hidden.inverse_temperature(
                settings["identities"]["layers"] - 1, settings["identities"]["memory"], start
            )
            for start in STARTS
        }
    )
    rank = settings["rank"]
    for tokens in ("moving", "fixed"):
        sizes = [
            [
                hidden.score_rank(rank["n"], layer, rank["head_width"], width)
                for layer in range(rank["layers"])
            ]
            for width in (None, rank["d"] if tokens == "fixed" else None)
        ]
        laws[f"rank, {tokens} tokens"] = xr.Dataset(
            {"stated": ("layer", sizes[0]), "corrected": ("layer", sizes[1])}
        )
    for correlation in settings["temperature"]["correlation"]:
        laws[f"scores r={correlation}"] = variances(settings["temperature"], memory, correlation)
    second = settings["second_layer"]
    for view in second["views"]:
        for kernel in second["bandwidth"]:
            laws[f"second layer, {view['name']}, {kernel}"] = second_layer(second, view, kernel)
    return laws


def _logs(memory: np.ndarray) -> np.ndarray:
    """log α′; NaN without memory, where the collapse is of another kind."""
    return np.array([hidden.second_difference(m) if m > 0 else np.nan for m in memory])


def simplex(settings: dict[str, Any], n: int, scale: float, memory: np.ndarray) -> xr.Dataset:
    """log a_l after every layer, and far second differences of it over log α′, less 1."""
    tokens = hidden.Simplex(n, settings["size"], scale, settings["value_scale"])
    sizes = np.array(
        [
            [hidden.simplex_sizes(tokens, FAR, m, start, settings["skip"]) for m in memory]
            for start in STARTS
        ]
    ).transpose(2, 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.where(sizes > LEAST, sizes, np.nan))
        steps = np.diff(logs, n=2, axis=0) / np.log(memory) - 1
    # The last one before sizes underflow.
    last = np.isfinite(steps).cumsum(0).argmax(0)
    far = np.take_along_axis(steps, last[None], axis=0)[0]
    far[:, memory == 0] = np.nan
    return xr.Dataset(
        {"log_size": (LAYERS, logs[1 : settings["layers"] + 1]), "far": (LAYERS[1:], far)},
        {"start": list(STARTS), "memory": memory},
    )


def variances(settings: dict[str, Any], memory: np.ndarray, correlation: float) -> xr.Dataset:
    """Var h_l, and the share of keys attended to."""
    values = np.array(
        [
            [
                [hidden.score_variance(layer, m, start, correlation) for m in memory]
                for start in STARTS
            ]
            for layer in range(settings["layers"])
        ]
    )
    keys = np.vectorize(lambda v: hidden.effective_keys(1, v))(values)
    coords = {"start": list(STARTS), "memory": memory}
    return xr.Dataset({"score_variance": (LAYERS, values), "keys": (LAYERS, keys)}, coords)


def second_layer(settings: dict[str, Any], view: dict[str, Any], kernel: str) -> xr.Dataset:
    """Exact theory of one head: its frame is that of both layers, scaled by roots of shares."""
    waves = settings["frequency"] * np.array(view["target"], float)
    target = TrigonometricSeries(np.ones(len(waves)), waves, np.zeros(len(waves)))
    task = Task(DESIGNS["isotropic"](2), target, settings["noise_sd"])
    axis = np.array(settings["queries"], float)
    queries = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    columns = np.array(view["frames"], float)
    names = ("squared_bias", "variance", "mse")
    out: dict[str, list[list[float]]] = {k: [] for k in (*names, *(f"{k}_error" for k in names))}
    for start in STARTS:
        rows = []
        for memory in settings["memory"]:
            w = hidden.shares(1, memory, start)
            if view["frames"][0] == view["frames"][1]:  # one coordinate: shares add up
                frame = np.sqrt(w.sum()) * columns[:1].T
            else:
                frame = (np.sqrt(w)[:, None] * columns)[w > 0].T
            heads = Heads(frame[None], kernel, settings["bandwidth"][kernel])
            rows.append(theory(task, heads, settings["n"], queries, order="exact", rtol=1e-5))
        for name in out:
            out[name].append([float(row[name]) for row in rows])
    dims = ("start", "memory")
    return xr.Dataset(
        {name: (dims, np.array(values)) for name, values in out.items()},
        {"start": list(STARTS), "memory": settings["memory"]},
    )
