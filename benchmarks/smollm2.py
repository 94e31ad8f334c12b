"""SmolLM2 in plain NumPy, from its GGUF file: loss per token, and inputs of its attention layers.

    python -m benchmarks.smollm2 MODEL.gguf x.npz

The text is Python's own documentation. Needs the packages gguf and tokenizers.
"""

import sys
from pydoc_data.topics import topics

import numpy as np
from gguf import GGUFReader
from tokenizers import Tokenizer, models, pre_tokenizers

from sims.inspect import Model, layers
from sims.inspect.patterns import projections, rule_of, weights

SHAPE = (16, 256)
"""Sequences, and tokens of each."""


def token_ids(path: str) -> np.ndarray:
    """Tokens (sequence, token) of the beginning of the text."""
    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(pair.split(" ")) for pair in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE(dict(zip(tokens, range(len(tokens)), strict=True)), merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    return np.resize(tokenizer.encode("\n".join(topics.values())).ids, SHAPE)


def normalised(x: np.ndarray, gain: np.ndarray, epsilon: float) -> np.ndarray:
    """Tokens (…, d) over their root mean square, times a gain."""
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * gain


def forward(model: Model, ids: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Inputs (sequence, token, d) of each attention layer, and the final tokens."""
    epsilon = model.config["rms_norm_eps"]
    rule = rule_of(model.config)
    x = model.read("token_embd.weight")[ids]
    inputs = {}
    for layer in layers(model):
        tokens = inputs[str(layer.number)] = normalised(x, layer.gain, epsilon)
        for sequence, given in zip(x, tokens, strict=True):
            query, key, value = projections(layer, given, rule)
            heads = weights(layer, query, key, rule) @ value[layer.key_head]
            sequence += (heads @ layer.matrices.output).sum(0)
        norm, gate, up, down = (
            model.read(f"model.layers.{layer.number}.ffn_{name}.weight")
            for name in ("norm", "gate", "up", "down")
        )
        hidden = normalised(x, norm, epsilon)
        opened = hidden @ gate.T
        x += opened / (1 + np.exp(-opened)) * (hidden @ up.T) @ down.T
    return inputs, normalised(x, model.read("output_norm.weight"), epsilon)


def losses(model: Model, final: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Mean log loss of the next token, by sequence, from final tokens and tied embeddings."""
    embedding = model.read("token_embd.weight")
    found = []
    for tokens, following in zip(final[:, :-1], ids[:, 1:], strict=True):
        scores = tokens @ embedding.T
        scores -= scores.max(-1, keepdims=True)
        chosen = scores[np.arange(len(following)), following]
        found.append((np.log(np.exp(scores).sum(-1)) - chosen).mean())
    return np.array(found)


if __name__ == "__main__":
    ids = token_ids(sys.argv[1])
    model = Model(sys.argv[1])
    inputs, final = forward(model, ids)
    loss = losses(model, final, ids)
    error = loss.std(ddof=1) / len(loss) ** 0.5
    print(f"loss per token {loss.mean():.4f} ± {error:.4f}, perplexity {np.exp(loss.mean()):.2f}")
    np.savez(sys.argv[2], **{name: x.astype(np.float32) for name, x in inputs.items()})
