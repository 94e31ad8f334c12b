"""Heads on sequences: what they have in common, and what the layer loses without them."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sims.base.runtime import in_threads
from sims.inspect.geometry import frames_of
from sims.montecarlo import Draw

from .lawlike import mix_frames, overlap_of, selectivity, shared_keys, shared_weights
from .problems import Model, draw_sequences, mask, read_model

PAIR = ("layer", "head", "head2")
DIMS = {
    "patterns": ("tokens", *PAIR),
    "selectivity": ("tokens", "layer", "head"),
    "keys": ("tokens",),
    "law_patterns": ("tokens", *PAIR),
    "outputs": PAIR[:2],
    "written": PAIR,
    "merging": PAIR,
    "pruning": PAIR[:2],
    "predictions": PAIR[:2],
    "recovered": (),
    "loss": (),
}


class Observed(NamedTuple):
    """What heads do on some sequences.

    Attributes:
        outputs: of the heads at queries, (layer, token, H, d_v).
        patterns: ``E Σ_i w_hi w_gi``, (tokens, layer, H, H).
        selectivity: ``E 1/(n Σ_i w_hi²)``, (tokens, layer, H); n counts keys that a query sees.
        keys: mean number of keys that a query sees, (tokens,).
        recovered: share of the tokens seen that the model returns; NaN if it predicts no masks.
    """

    outputs: np.ndarray
    patterns: np.ndarray
    selectivity: np.ndarray
    keys: np.ndarray
    recovered: float


def measure_batch(draw: Draw, replicates: int, constants: Mapping[str, Any]) -> dict[str, Any]:
    """Means over tokens of a batch of sequences, and the same of heads of the law.

    From the first half what :class:`Observed` has, with ``outputs`` the variance of what a head
    writes. From the second half ``written``, the covariances of what two heads write, a trace over
    coordinates, and costs as shares of the variance of what all heads write:
    ``merging`` of head h, when the best linear map of head g's outputs stands in for its own;
    ``pruning``, when their mean does; and ``predictions``, what pruning does to predictions as
    :func:`removals` says. ``loss`` is the log loss of the tokens predicted.
    """
    rng = draw.rng()
    law = constants["law"]
    name = constants["name"]
    model = read_model(law, name)
    every = draw_sequences(law, name, model, rng, replicates)
    half = replicates // 2
    seen = observe(model, every[:half])
    held_out = observe(model, every[half:]).outputs
    means = seen.outputs.mean(1)

    def costs_of(place: int) -> tuple[np.ndarray, ...]:
        output = model.layers[place].matrices.output
        return removal(seen.outputs[place], held_out[place], output)

    costs = in_threads(costs_of, range(len(means)))
    size, written, merging, pruning = map(np.array, zip(*costs, strict=True))
    judged = every[half:][: law["judged"]] if model.causal else every[half:]
    losses, changes = zip(*(removals(model, *case, means) for case in judged), strict=True)
    return seen._asdict() | {
        "law_patterns": law_patterns(rng, model, seen),
        "outputs": size,
        "written": written,
        "merging": merging,
        "pruning": pruning,
        "predictions": np.mean(changes, axis=0),
        "loss": np.mean(losses),
    }


def observe(model: Model, sequences: list[tuple[np.ndarray, np.ndarray]]) -> Observed:
    """What the heads do on sequences, means over tokens and then over sequences."""
    observed = in_threads(lambda case: observe_sequence(model, *case), sequences)
    outputs, *others = zip(*observed, strict=True)
    return Observed(np.concatenate(outputs, 1), *(np.mean(values, 0) for values in others))


def observe_sequence(model: Model, tokens: np.ndarray, places: np.ndarray) -> Observed:
    """What the heads do on one sequence, masked at some places."""
    inputs = model.passed(mask(model, tokens, places))
    chosen = choices(model, tokens, places)
    of_layers = []
    for place, x in enumerate(inputs[:-1]):
        weights, outputs = model.attention(place, x)
        patterns, shares = zip(*(overlaps(weights, *choice) for choice in chosen), strict=True)
        of_layers.append((outputs.swapaxes(0, 1)[model.first :], patterns, shares))
    outputs, patterns, shares = map(np.stack, zip(*of_layers, strict=True))
    recovered = np.nan
    if model.predicts and not model.causal:
        # queries of the last choice are not special
        plain = chosen[-1][0]
        recovered = (model.scores(inputs[-1]).argmax(1) == tokens)[plain].mean()
    keys = np.array([seen.mean() for *_, seen in chosen])
    return Observed(outputs, patterns.swapaxes(0, 1), shares.swapaxes(0, 1), keys, recovered)


def overlaps(
    weights: np.ndarray, queries: np.ndarray, keys: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Patterns (H, H) and selectivity (H,) of weights (H, T, T) among the tokens of a choice."""
    among = weights[:, queries][..., keys]
    among /= among.sum(-1, keepdims=True)
    return shared_keys(among), selectivity(among, seen)


def choices(
    model: Model, tokens: np.ndarray, places: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Queries, keys, and how many keys a query sees, by the choice of :data:`.problems.TOKENS`.

    Special tokens are the first and the last one, and masks; of a causal model the first one, as a
    key alone.
    """
    every = np.arange(len(tokens))
    queries = every[model.first :]
    if model.causal:
        return [(queries, every, queries + 1), (queries, every[1:], queries)]
    plain = np.setdiff1d(every[1:-1], places)
    return [(kept, kept, np.full(len(kept), len(kept))) for kept in (every, plain)]


def targets(model: Model, tokens: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places at which a model predicts tokens, and these: masked ones, or the next ones."""
    if model.causal:
        asked = np.arange(model.first, len(tokens) - 1)
        return asked, tokens[asked + 1]
    return places, tokens[places]


def law_patterns(rng: np.random.Generator, model: Model, seen: Observed) -> np.ndarray:
    """:attr:`Observed.patterns` of heads of the law at a layer's H, d_k, d, index, n, n_eff/n."""
    patterns = np.empty_like(seen.patterns)
    frames = in_threads(lambda place: law_frames(model, place), range(patterns.shape[1]))
    for kind, place in np.ndindex(patterns.shape[:2]):
        share = float(seen.selectivity[kind, place].mean())
        keys = round(float(seen.keys[kind]))
        patterns[kind, place] = shared_weights(rng, frames[place], keys, share)
    return patterns


@cache
def law_frames(model: Model, place: int) -> np.ndarray:
    """Random frames with the mean overlap of a layer's key subspaces; every pass has its own."""
    layer = model.layers[place]
    frames, _ = frames_of(layer.folded.key[layer.key_head])
    heads, dimension, width = frames.shape
    rng = np.random.default_rng(place)
    return mix_frames(rng, heads, dimension, width, overlap_of(frames))


def removal(
    seen: np.ndarray, new: np.ndarray, written: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sizes (H,), covariances (H, H) and costs of merging (H, H) and pruning (H,).

    Sizes are of the outputs (token, H, d_v) by which others are chosen, covariances of the new.

    Args:
        seen: outputs by which means and stand-ins are chosen.
        new: outputs of which the costs are.
        written: W_O by heads, (H, d_v, d).
    """
    mean = seen.mean(0)
    known = second_moments(seen - mean)
    fresh = second_moments(new - mean)
    own, fresh_own = (np.einsum("hhde->hde", moments) for moments in (known, fresh))
    products = written @ written.swapaxes(1, 2)
    total = np.einsum("hdi,hgde,gei->", written, fresh, written, optimize=True)
    spread = second_moments(new - new.mean(0))
    covariance = np.einsum("hdi,hgde,gei->hg", written, spread, written, optimize=True)
    ridge = own.trace(axis1=1, axis2=2)[:, None, None] / len(seen) * np.eye(written.shape[1])
    # (g, h) in what follows: o_h − A o_g
    stand_in = np.linalg.solve((own + ridge)[:, None], known).swapaxes(2, 3)
    cross = stand_in @ fresh
    residual = fresh_own - cross - cross.swapaxes(2, 3)
    residual += stand_in @ fresh_own[:, None] @ stand_in.swapaxes(2, 3)
    merging = np.einsum("hde,ghde->hg", products, residual) / total
    np.fill_diagonal(merging, 0)
    size, pruning = (np.einsum("hde,hde->h", products, moments) for moments in (own, fresh_own))
    return size, covariance, merging, pruning / total


def second_moments(outputs: np.ndarray) -> np.ndarray:
    """Second moments of every two heads' outputs (token, H, d_v), (H, H, d_v, d_v)."""
    return np.einsum("thi,tgj->hgij", outputs, outputs, optimize=True) / len(outputs)


def log_chances(scores: np.ndarray, tokens: np.ndarray | None = None) -> np.ndarray:
    """Logarithms of softmax of scores (M, token): of a token for each row, (M, 1), or of all."""
    top = scores.max(-1, keepdims=True)
    chances = scores - top
    np.exp(chances, out=chances)
    total = top + np.log(chances.sum(-1, keepdims=True))
    if tokens is not None:
        scores = np.take_along_axis(scores, tokens[:, None], -1)
    return scores - total


def removals(
    model: Model, tokens: np.ndarray, places: np.ndarray, means: np.ndarray
) -> tuple[float, np.ndarray]:
    """Log loss per token, and its changes (layer, H) when a head writes its mean, in nats.

    The change is that of the log loss for a causal model. For masked tokens it is the divergence
    from the whole model's predictions: what is added to the loss of tokens that this model draws.
    NaN for a model that predicts no tokens. Layers share the cores.

    Args:
        means: of the heads' outputs, (layer, H, d_v).
    """
    if not model.predicts:
        return np.nan, np.full(means.shape[:2], np.nan)
    inputs = model.passed(mask(model, tokens, places))
    asked, truth = targets(model, tokens, places)
    whole = model.scores(inputs[-1][asked])
    loss = -float(log_chances(whole, truth).mean())
    counted = truth if model.causal else None
    reference = log_chances(whole, counted)
    del whole
    shares = 1.0 if model.causal else np.exp(reference)

    def changes_of(place: int) -> list[float]:
        """Changes by the removed head of a layer, (H,)."""
        x = inputs[place]
        output = model.cast[place].matrices.output
        written = model.attention(place, x)[1] @ output
        mean = (means[place][:, None] @ output).astype(x.dtype)
        changes = []
        for others in written.sum(0) - written + mean:
            last = model.after(place, x, others)
            for later in range(place + 1, len(means)):
                last = model.forward(later, last)
            moved = reference - log_chances(model.scores(last[asked]), counted)
            changes.append((shares * moved).sum(-1).mean())
        return changes

    return loss, np.array(in_threads(changes_of, range(len(means))))
