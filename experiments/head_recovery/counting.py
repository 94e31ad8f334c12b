"""Directions in which heads may move while their mixed output stays, counted by ranks."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sims.montecarlo import Draw, HostBatches

from .layers import CONTENTS, free_layers

Array = np.ndarray
KEPT, GAP = 1e-10, 1e3
"""Singular values below this share of the largest are none, if the next is so many times larger."""


def rank(matrix: Array) -> float:
    """Numerical rank, NaN where it is open."""
    values = np.linalg.svd(matrix, compute_uv=False)
    kept = values > KEPT * values[0]
    rest = values[~kept]
    clear = not rest.size or values[kept][-1] >= GAP * rest[0]
    return float(kept.sum()) if clear else np.nan


def output_matrix(rng: np.random.Generator, kind: str, p: Mapping[str, Any]) -> Array:
    """W_O by heads, (H, d_k, d): generic, or one matrix repeated, or generic of one rank less."""
    heads, width, d = p["heads"], p["width"], p["d"]
    if kind == "repeated":
        return np.tile(rng.normal(size=(width, d)), (heads, 1, 1))
    total = heads * width
    if kind == "deficient":
        inner = min(total, d) - 1
        whole = rng.normal(size=(total, inner)) @ rng.normal(size=(inner, d))
        return np.asarray(whole.reshape(heads, width, d))
    return rng.normal(size=(heads, width, d))


def jacobian(output: Array, gates: Array) -> Array:
    """The map from all heads' outputs, (n H d_k), to the mixed output, (n d)."""
    n, heads = gates.shape
    units = np.eye(n * heads * output.shape[1]).reshape(-1, n, heads, output.shape[1])
    gated = units.swapaxes(1, 2) * gates.T[:, :, None]
    return np.asarray((gated @ output).sum(1).reshape(len(units), -1).T)


def free_heads(settings: Mapping[str, Any]) -> HostBatches:
    """Open directions of all heads at once, and of the first alone, Y_h free, of every layer."""
    own = free_layers(settings)
    dims = dict.fromkeys(("joint", "single"), ("layer",))
    return HostBatches(partial(_free, list(own.values())), dims=dims, coords={"layer": list(own)})


def drawn_gates(rng: np.random.Generator, kind: str, n: int, heads: int) -> Array:
    """Gates (n, H): none (ones), generic, or generic with one that is 0."""
    if kind == "none":
        return np.ones((n, heads))
    gates = rng.uniform(0.1, 0.9, size=(n, heads))
    gates[0, 0] *= kind != "one zero"
    return gates


def _free(layers: list[dict[str, Any]], draw: Draw, _: int, __: None) -> dict[str, Any]:
    rng, joint, single = draw.rng(), [], []
    for p in layers:
        n, heads, width = p["n"], p["heads"], p["width"]
        output = output_matrix(rng, p["kind"], p)
        whole = jacobian(output, drawn_gates(rng, p["gates"], n, heads))
        joint.append(n * heads * width - rank(whole))
        # A direction of the kernel moves the first head unless it is in the kernel of the others.
        others = np.delete(whole.reshape(-1, n, heads, width), 0, axis=2).reshape(len(whole), -1)
        left = n * (heads - 1) * width - rank(others) if heads > 1 else 0.0
        single.append(joint[-1] - left)
    return {"joint": np.array(joint), "single": np.array(single)}


def bound_heads(p: Mapping[str, Any]) -> HostBatches:
    """Open directions of heads that are not free, under a plain sum, without gates and with."""
    return HostBatches(partial(_bound, dict(p)), dims={"bound": ("content", "gates")})


def _bound(p: dict[str, Any], draw: Draw, _: int, __: None) -> dict[str, Any]:
    rng = draw.rng()
    n, heads, width, d = (p[name] for name in ("n", "heads", "width", "d"))
    tokens, many = rng.normal(size=(n, d)), rng.dirichlet(np.ones(n), size=(heads, n))
    maps = {"generic": many, "equal": many[:1], "uniform": np.full((1, n, n), 1 / n)}
    counts = []
    for content in CONTENTS:
        # Each head is a linear map of what is unknown of it, for each of its coordinates alike.
        seen = np.ones((heads, n, 1)) if content == "shared" else maps[content] @ tokens
        seen = np.broadcast_to(seen, (heads, n, seen.shape[2]))
        for gates in (drawn_gates(rng, kind, n, heads) for kind in ("none", "generic")):
            whole = np.concatenate(list(seen * gates.T[:, :, None]), axis=1)
            counts.append(width * (whole.shape[1] - rank(whole)))
    return {"bound": np.reshape(counts, (len(CONTENTS), 2))}


def recovery(p: Mapping[str, Any], kind: str) -> HostBatches:
    """Heads recovered by W_O⁺ from their mix, and two sets of heads that have one mix."""
    return HostBatches(partial(_recovery, dict(p), kind))


def _recovery(p: dict[str, Any], kind: str, draw: Draw, _: int, __: None) -> dict[str, Any]:
    """Errors of W_O⁺ in units of rounding, how far its heads are, and how far their mix is.

    The unit is machine epsilon times the condition of W_O; distances are relative to the heads'
    size and to the mix'.
    """
    rng = draw.rng()
    n, heads, width = p["n"], p["heads"], p["width"]
    output = output_matrix(rng, kind, p)
    whole = output.reshape(heads * width, -1)
    outputs = rng.normal(size=(heads, n, width))
    mixed = (outputs @ output).sum(0)
    side = outputs.swapaxes(0, 1).reshape(n, -1)
    found = mixed @ np.linalg.pinv(whole, rcond=KEPT)
    values = np.linalg.svd(whole, compute_uv=False)
    size = np.linalg.norm(side)
    values = values[values > KEPT * values[0]]
    unit = np.finfo(float).eps * values[0] / values[-1]
    moved = np.linalg.norm((side - found) @ whole) / np.linalg.norm(mixed)
    return {
        "recovered": np.linalg.norm(found - side) / size / unit,
        "moved": np.linalg.norm(found - side) / size,
        "mix": moved / unit,
    }


def parameters(p: Mapping[str, Any]) -> HostBatches:
    """Numbers in the arrays of gates, over those of W_O, by d_k: of the token, and as a table."""
    dims = dict.fromkeys(("token", "table"), ("width",))
    return HostBatches(partial(_parameters, dict(p)), dims=dims, coords={"width": p["widths"]})


def _parameters(p: dict[str, Any], _: Draw, __: int, ___: None) -> dict[str, Any]:
    shares = []
    for width in p["widths"]:
        d, heads = p["d"], p["d"] // width
        output = np.empty((heads, width, d))
        tables = np.empty((d, heads)), np.empty((p["positions"], heads))
        shares.append([table.size / output.size for table in tables])
    token, table = np.transpose(shares)
    return {"token": token, "table": table}
