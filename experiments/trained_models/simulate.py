"""Heads at work on sequences: what they have in common, and what the layer loses without them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import log_softmax

from sims.montecarlo import Draw

from .encoders import Encoder
from .problems import hidden, sequence, trained

DIMS = {
    "patterns": ("layer", "head", "head2"),
    "outputs": ("layer", "head"),
    "merging": ("layer", "head", "head2"),
    "pruning": ("layer", "head"),
    "predictions": ("layer", "head"),
    "recovered": (),
}


def measured(draw: Draw, replicates: int, constants: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Means over tokens of a batch of sequences.

    From the first half ``patterns``, ``E Σ_i w_hi w_gi``, and ``outputs``, the variance of what a
    head writes. From the second half costs as shares of the variance of what all heads write:
    ``merging`` of head h, when the best linear map of head g's outputs stands in for its own;
    ``pruning``, when their mean does; and ``predictions``, the Kullback–Leibler divergence at
    masked tokens that pruning makes: what it adds to the loss of tokens that the whole model draws.
    ``recovered`` is the share of tokens seen that the model returns.
    """
    rng, law, name = draw.rng(), constants["law"], constants["name"]
    model = trained(law, name)
    every = [sequence(law, name, model, rng) for _ in range(replicates)]
    first, second = every[: replicates // 2], every[replicates // 2 :]
    outputs, patterns, recovered = observed(model, first)
    held_out, _, _ = observed(model, second)
    changed = [divergences(model, *case, outputs.mean(1)) for case in second]
    costs = [removal(*layer) for layer in zip(outputs, held_out, model.heads, strict=True)]
    size, merging, pruning = (np.array(part) for part in zip(*costs, strict=True))
    return {
        "patterns": patterns,
        "outputs": size,
        "merging": merging,
        "pruning": pruning,
        "predictions": np.mean(changed, axis=0),
        "recovered": np.array(recovered),
    }


def observed(
    model: Encoder, sequences: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Outputs of heads (layer, token, H, d_v), shared weights, and the share of tokens returned."""
    outputs, shared, recovered = [], [], []
    for tokens, places in sequences:
        inputs, logits = model.passed(hidden(model, tokens, places))
        seen = np.delete(np.arange(len(tokens)), places)[1:-1]
        recovered.append((logits.argmax(1) == tokens)[seen].mean())
        heads = [model.attention(place, x) for place, x in enumerate(inputs)]
        weights = np.stack([w.reshape(len(w), -1) for w, _ in heads])
        shared.append(weights @ weights.swapaxes(1, 2) / len(tokens))
        outputs.append(np.stack([o.swapaxes(0, 1) for _, o in heads]))
    return np.concatenate(outputs, 1), np.mean(shared, 0), float(np.mean(recovered))


def removal(
    seen: np.ndarray, new: np.ndarray, matrices: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes (H,), and costs of merging (H, H) and pruning (H,), of outputs (token, H, d_v)."""
    written = matrices[2].astype(float)
    mean = seen.mean(0)
    known, fresh = (
        np.einsum("thi,tgj->hgij", off, off, optimize=True) / len(off)
        for off in (seen - mean, new - mean)
    )
    products = written @ written.swapaxes(1, 2)
    total = np.einsum("hdi,hgde,gei->", written, fresh, written, optimize=True)
    heads = range(len(written))
    merging = np.zeros((len(written), len(written)))
    for g in heads:
        ridge = np.trace(known[g, g]) / len(seen) * np.eye(written.shape[1])
        for h in heads:
            # o_h − A o_g
            stand_in = np.linalg.solve(known[g, g] + ridge, known[g, h]).T
            cross = stand_in @ fresh[g, h]
            residual = fresh[h, h] - cross - cross.T + stand_in @ fresh[g, g] @ stand_in.T
            merging[h, g] = (products[h] * residual).sum() / total
    size, pruning = (
        np.array([(products[h] * moments[h, h]).sum() for h in heads]) for moments in (known, fresh)
    )
    np.fill_diagonal(merging, 0)
    return size, merging, pruning / total


def divergences(
    model: Encoder, tokens: np.ndarray, places: np.ndarray, means: np.ndarray
) -> np.ndarray:
    """How far predictions move when a head writes its mean (layer, H, d_v), (layer, H), in nats."""
    # The passes with a head pruned go on together, (layer·H, T, d).
    x = model.embedded(hidden(model, tokens, places))
    running = np.empty((0, *x.shape), x.dtype)
    for place, (*_, output) in enumerate(model.heads):
        joined = np.concatenate([x[None], running])
        written = model.attention(place, joined)[1] @ output
        attended = written.sum(1)
        pruned = attended[0] - written[0] + (means[place][:, None] @ output).astype(x.dtype)
        joined = np.concatenate([joined, np.broadcast_to(x, pruned.shape)])
        after = model.after(place, joined, np.concatenate([attended, pruned]))
        x, running = after[0], after[1:]
    reference, others = (
        log_softmax(model.scores(o[..., places, :]), axis=-1) for o in (x, running)
    )
    moved = (np.exp(reference) * (reference - others)).sum(-1).mean(-1)
    return np.asarray(moved.reshape(len(model.heads), -1))
