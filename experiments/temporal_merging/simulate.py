"""The layer's passes beside one another and counted; merged heads are the grid's points.

Gaps are in units of rounding: machine epsilon times the largest output.
"""

import math
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
from jaxtyping import Float

from sims.attention import latent_cache as cache
from sims.montecarlo import Draw, HostBatches, HostReplicates
from sims.problem import Heads
from sims.simulation import nw_weights
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit, Unit, grid_units
from sims.weights import FACTORIES

from .drawn import cases
from .problems import drawn_problems

EPS = 2.0**-52
"""Machine epsilon of float64."""
SEARCHED = (
    "printed rule of opening",
    "latent attention",
    "whole chunks first",
    "gates of one half",
)
"""Literal readings whose smallest counterexamples are looked for."""
Settings = Mapping[str, Any]


def units(experiment: Experiment) -> dict[str, Unit]:
    """The grid's points; passes by stride; latent attention; counts; the search; drawn problems."""
    settings = experiment.settings
    own: dict[str, Unit] = {
        f"passes s={stride}": unit(partial(passes, settings, stride), stride=stride)
        for stride in settings["strides"]
    }
    own["latent attention"] = unit(partial(beside_latent_attention, settings))
    counts = dict.fromkeys(("elements", "products", "training"), ("count",))
    own["sizes"] = unit(partial(sizes, settings["sizes"]), counts)
    own["search"] = unit(partial(searched, settings), {"first": ("reading", "cell")})
    own["pattern"] = unit(partial(pattern, settings), {"attention": ("row", "column")})
    shared, spec = settings["drawn"], experiment.points[0].spec
    names = [case.name for case in cases(shared, spec.heads.bandwidth)]
    own["drawn problems"] = SampledUnit(
        HostBatches(
            drawn_problems,
            constants=(shared, spec),
            coords={"case": names},
            dims=dict.fromkeys(("drawn_mse", "drawn_variance"), ("case",)),
        ),
        {"stride": None},
        replicates=shared["replicates"],
    )
    return grid_units(experiment) | own


def unit(
    replicate: partial[dict[str, Any]],
    dims: Mapping[str, tuple[str, ...]] | None = None,
    stride: int | None = None,
) -> SampledUnit:
    """Two replicates a batch of a function, all kept."""
    sampler = HostReplicates(replicate, reduce="stack", dims=dims or {})
    return SampledUnit(sampler, {"stride": stride}, replicates=2)


def drawn(
    settings: Settings, stride: int, rule: cache.GateRule, tokens: int, rng: np.random.Generator
) -> tuple[cache.LatentLayer, Float[np.ndarray, "T d"]]:
    """A layer, and tokens."""
    d, r, k, h, dn, dr, dv = (
        settings["layer"][name]
        for name in ("dimension", "latent", "gate", "heads", "width", "rotary", "value")
    )
    shapes = [(r, k), (k,), (r, k), (k,)]
    gate = cache.Gate(*(rng.normal(size=shape) / 1.5 for shape in shapes))
    down, query, rotary_query, rotary_key, up_key, up_value = (
        rng.normal(size=shape) / 1.5
        for shape in [(d, r), (h, d, dn), (h, d, dr), (d, dr), (h, r, dn), (h, r, dv)]
    )
    layer = cache.LatentLayer(
        down, gate, query, rotary_query, rotary_key, up_key, up_value, stride, rule
    )
    return layer, rng.normal(size=(tokens, d))


def gap(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, over the largest entry."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def passes(
    settings: Settings, stride: int, draw: Draw, shared: None, batch: None
) -> dict[str, float]:
    """All comparisons of a layer at one stride, each the worst over the lengths."""
    lengths: list[int] = settings["lengths"]
    out: dict[str, float] = {}
    most = max(lengths)
    layer, x = drawn(settings, stride, "printed", most, draw.rng())
    rules: tuple[cache.GateRule, ...] = ("printed", "normalised")
    for rule in rules:
        own = layer._replace(rule=rule)
        stepped, _ = cache.decode(own, x)
        gaps, sums = [], []
        for length in lengths:
            found = cache.parallel(own, x[:length])
            gaps.append(gap(found.output, stepped[:length]) / EPS)
            ones = np.ones((length, 1))
            mass = cache.grown(ones, found.gates, stride, rule == "normalised")[:, 0]
            sums.append(np.abs(found.weights @ mass - 1).max() / EPS)
        out |= {f"parallel {rule}": max(gaps), f"sum {rule}": max(sums)}
    stepped, _ = cache.decode(layer, x)
    printed, _ = cache.decode(layer, x, "printed")
    out["opening"] = gap(printed, stepped) / EPS
    whole = whole_chunks_first(layer, x)
    ends = np.arange(1, most + 1) % stride == 0
    ends[-1] = True  # the last chunk is as whole as it gets
    sizes = np.abs(stepped).max()
    apart = np.abs(whole - stepped).max((1, 2)) / sizes
    out["inside"] = float(apart[~ends].mean()) if stride > 1 else 0.0
    out["at ends"] = float(apart[ends].max()) / EPS
    for name, gates in {"mean": 1 / stride, "half": 0.5}.items():
        for chunks, tokens in {"whole": 4 * stride, "partial": 4 * stride + 1}.items():
            total = summed(stride, gates, tokens, draw.rng())
            if chunks == "whole" or stride > 1:
                out[f"sum {name}, {chunks}"] = abs(total - 1) / EPS
    return out


def summed(stride: int, gate: float, tokens: int, rng: np.random.Generator) -> float:
    """The sum of a merged head's weights at one query."""
    query, keys = rng.normal(size=2), rng.normal(size=(tokens, 2))
    return float(np.asarray(nw_weights(merged_head(stride, gate), query, keys)).sum())


@lru_cache
def merged_head(stride: int, gate: float) -> Heads:
    """One softmax head in the plane over slots with equal gates."""
    return Heads(np.eye(2)[None], FACTORIES["merged"](stride, gates=[gate] * stride), 1.0)


def whole_chunks_first(
    layer: cache.LatentLayer, x: Float[np.ndarray, "T d"]
) -> Float[np.ndarray, "T H d_v"]:
    """Every chunk is merged over all of its tokens, then token m sees chunks up to its own."""
    places, s = np.arange(len(x)), layer.stride
    latents = cache.latents_of(layer, x)
    gates = cache.gates_of(layer, latents)
    last = np.minimum(np.arange(s - 1, len(x) + s - 1, s), len(x) - 1)
    slots = cache.grown(latents, gates, s, layer.rule == "normalised")[last]
    keys = cache.rotated(x @ layer.rotary_key, places)[last]
    absorbed = (x @ layer.query) @ layer.up_key.swapaxes(1, 2)
    mask = np.arange(len(last)) <= places[:, None] // s
    scale = (layer.query.shape[2] + layer.rotary_key.shape[1]) ** 0.5
    rotary = cache.rotated(x @ layer.rotary_query, places)
    mixed, _ = cache.attend(absorbed, rotary, slots, keys, scale, mask)
    return np.einsum("hqr,hrv->qhv", mixed, layer.up_value)


def latent_attention(
    layer: cache.LatentLayer, x: Float[np.ndarray, "T d"]
) -> Float[np.ndarray, "T H d_v"]:
    """Multi-head latent attention: keys and values of every head from every token's latent."""
    places, latents = np.arange(len(x)), cache.latents_of(layer, x)
    queries = np.concatenate(
        [x @ layer.query, cache.rotated(x @ layer.rotary_query, places)], axis=2
    )
    shared = np.stack([cache.rotated(x @ layer.rotary_key, places)] * len(layer.query))
    keys = np.concatenate([latents @ layer.up_key, shared], axis=2)
    scores = np.einsum("hqd,hkd->hqk", queries, keys) / queries.shape[2] ** 0.5
    scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("hqk,hkv->qhv", weights, latents @ layer.up_value)


def beside_latent_attention(
    settings: Settings, draw: Draw, shared: None, batch: None
) -> dict[str, float]:
    """At s = 1, by what is done with gates."""
    layer, x = drawn(settings, 1, "printed", max(settings["lengths"]), draw.rng())
    expected = latent_attention(layer, x)
    rules: tuple[cache.GateRule, ...] = ("printed", "ones", "normalised")
    return {
        rule: gap(cache.parallel(layer._replace(rule=rule), x).output, expected) / EPS
        for rule in rules
    }


class Counted(float):
    """A number that counts the products it enters."""

    products = 0

    def __mul__(self, other: float) -> "Counted":
        Counted.products += 1
        return Counted(float(self) * float(other))

    def __add__(self, other: float) -> "Counted":
        return Counted(float(self) + float(other))

    def __sub__(self, other: float) -> "Counted":
        return Counted(float(self) - float(other))

    def __truediv__(self, other: float) -> "Counted":
        return Counted(float(self) / float(other))

    def exp(self) -> "Counted":
        return Counted(math.exp(self))


def counting(*shape: int) -> np.ndarray:
    """An array of numbers that count."""
    size = math.prod(shape)
    return np.array([Counted(i % 7 / 7) for i in range(size)], dtype=object).reshape(shape)


def products_of(heads: int, queries: int, slots: int, latent: int, rotary: int) -> int:
    """Products of :func:`~sims.attention.latent_cache.attend`."""
    before = Counted.products
    cache.attend(
        counting(heads, queries, latent),
        counting(heads, queries, rotary),
        counting(slots, latent),
        counting(slots, rotary),
        1.0,
    )
    return Counted.products - before


def products_of_mha(heads: int, width: int, tokens: int) -> int:
    """Products of a decoding step of multi-head attention over its cache."""
    before = Counted.products
    for _ in range(heads):
        scores = counting(1, width) @ counting(tokens, width).T
        weights = np.exp(scores - scores.max())
        (weights / weights.sum()) @ counting(tokens, width)
    return Counted.products - before


@lru_cache(maxsize=4)
def counts(
    heads: int,
    width: int,
    latent: int,
    rotary: int,
    strides: tuple[int, ...],
    tokens: int,
    training: int,
) -> dict[str, np.ndarray]:
    """Elements of the cache and products of a step, by stride and last of MHA; of training."""
    elements, products, trained = [], [], []
    for stride in strides:
        rng = np.random.default_rng(0)
        sized = {
            "dimension": 4,
            "latent": latent,
            "gate": 4,
            "heads": 1,
            "width": width,
            "rotary": rotary,
            "value": width,
        }
        layer, x = drawn({"layer": sized}, stride, "printed", tokens, rng)
        kept = cache.decode(layer, x)[1]
        elements.append(kept.elements)
        products.append(products_of(heads, 1, len(kept.slots), latent, rotary))
        # All T queries against the slots that the pass attends to: one for every token.
        seen = cache.parallel(layer, x[:training]).weights.shape[-1]
        trained.append(products_of(heads, training, seen, latent, rotary))
    keys = counting(heads, tokens, width)
    elements.append(2 * keys.size)
    products.append(products_of_mha(heads, width, tokens))
    return {
        "elements": np.array(elements, float),
        "products": np.array(products, float),
        "training": np.array([*trained, np.nan]),
    }


def sizes(settings: Settings, draw: Draw, shared: None, batch: None) -> dict[str, np.ndarray]:
    """The counts: nothing is drawn."""
    return counts(**{**settings, "strides": tuple(settings["strides"])})


def searched(settings: Settings, draw: Draw, shared: None, batch: None) -> dict[str, np.ndarray]:
    """The first cell, (tokens, stride), at which each literal reading fails; NaN if none does."""
    space, rng = settings["search"], draw.rng()
    cells = [
        (tokens, stride)
        for tokens in range(1, space["most_tokens"] + 1)
        for stride in range(1, space["most_stride"] + 1)
    ]
    found = np.full((len(SEARCHED), 2), np.nan)
    for place, reading in enumerate(SEARCHED):
        for cell in cells:
            gaps = [literal_gap(settings, reading, *cell, rng) for _ in range(space["layers"])]
            if max(gaps) > space["tolerance"]:
                found[place] = cell
                break
    return {"first": found}


def literal_gap(
    settings: Settings, reading: str, tokens: int, stride: int, rng: np.random.Generator
) -> float:
    """How far a literal reading is off for one drawn layer; latent attention is s = 1 alone."""
    if reading == "gates of one half":
        whole = tokens % stride == 0
        return abs(summed(stride, 0.5, tokens, rng) - 1) if whole else 0.0
    layer, x = drawn(settings, stride, "printed", tokens, rng)
    if reading == "latent attention":
        expected = latent_attention(layer, x)
        return gap(cache.parallel(layer, x).output, expected) if stride == 1 else 0.0
    stepped = cache.decode(layer, x)[0]
    if reading == "whole chunks first":
        return gap(whole_chunks_first(layer, x), stepped)
    return gap(cache.decode(layer, x, "printed")[0], stepped)


def pattern(settings: Settings, draw: Draw, shared: None, batch: None) -> dict[str, np.ndarray]:
    """Attention of the first head, one row a token, to the slots as they stood after each token."""
    own = settings["pattern"]
    layer, x = drawn(settings, own["stride"], "printed", own["tokens"], draw.rng())
    return {"attention": cache.parallel(layer, x).weights[0]}
