"""Trained encoders, ALBERT, RoBERTa and BERT, as NumPy passes."""

import re
from collections.abc import Container, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from scipy.special import erf

from sims.attention.attention import HeadMatrices, layer_norm
from sims.base.documents import mapping
from sims.inspect import Model, layers
from sims.inspect.layer import Layer
from sims.inspect.patterns import Rule, projections, weights

from .checkpoints import tensors

TOKEN = r"\[[^\]]+]|Br?|Cl?|>>|[NOSPFIbcnops().=#+\\/:~@?>*$-]|%[0-9]{2}|[0-9]"
"""Tokens of a reaction SMILES."""
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
HEADS = 8
"""Heads of the models whose files do not say it."""
EPSILON = 1e-12
"""Of LayerNorm."""


NAMES = mapping(
    """
albert.encoder.albert_layer_groups.0.albert_layers.: encoder.layer.
"albert.": ""
attention.dense: attention.output.dense
attention.LayerNorm: attention.output.LayerNorm
ffn_output: output.dense
ffn: intermediate.dense
full_layer_layer_norm: output.LayerNorm
decoder.sentence_encoder.layers.: encoder.layer.
decoder.sentence_encoder.embed_tokens: embeddings.word_embeddings
decoder.sentence_encoder.embed_positions: embeddings.position_embeddings
decoder.sentence_encoder.emb_layer_norm: embeddings.LayerNorm
self_attn.out_proj: attention.output.dense
self_attn_layer_norm: attention.output.LayerNorm
fc1: intermediate.dense
fc2: output.dense
final_layer_norm: output.LayerNorm
decoder.lm_head.dense: predictions.dense
decoder.lm_head.layer_norm: predictions.LayerNorm
decoder.lm_head.: predictions.decoder.
""",
    "names of tensors",
)
"""Parts of names of ALBERT's tensors, then of RoBERTa's, to BERT's, in the order of replacement."""
TYPES = "embeddings.token_type_embeddings.weight"
"""Embedding of token types, which RoBERTa lacks; it skips two positions instead."""
WIDER = "encoder.embedding_hidden_mapping_in"
"""ALBERT's map of embeddings to the width of its layers."""
START, END, MASK = "[CLS]", "[SEP]", "[MASK]"
"""Special tokens."""


def renamed(name: str) -> str:
    """The name that BERT has for a tensor or module."""
    for ours, theirs in NAMES.items():
        name = name.replace(ours, theirs)
    return name


def gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + erf(x / 2**0.5)) / 2


class Stack:
    """Layers that are passed one after the other, of an encoder or of a decoder.

    Both have the tokens of a text (``numbers``), inputs of the first layer (``embedded``), what
    comes ``after`` the heads of a layer, and logits (``scores``).

    Attributes:
        layers: in the order in which they are passed; ALBERT's one layer twelve times.
        cast: the same in the precision of the passes.
        rule: that turns scores into weights.
        causal: whether a token sees only earlier ones, and the next one is predicted.
        predicts: whether the model predicts tokens.
        ends: number of special tokens at each end of a sequence.
        first: the first query that counts.
        vocabulary: tokens to their numbers, of an encoder.
    """

    vocabulary: dict[str, int]
    rule = Rule(causal=False)

    def hold(self, every: Iterable[Layer], dtype: Any) -> None:
        """Keep the layers of a model, in its precision and in that of the passes."""
        self.layers: list[Layer] = []
        self.cast: list[Layer] = []
        single = partial(np.asarray, dtype=dtype)
        for layer in every:
            query, key, value = map(single, layer.biases)
            matrices = HeadMatrices(*map(single, layer.matrices))
            self.layers += [layer] * layer.passes
            cast = replace(layer, matrices=matrices, biases=(query, key, value))
            self.cast += [cast] * layer.passes

    def seen(self, layer: Layer, x: np.ndarray) -> np.ndarray:
        """What the heads of a layer see of its inputs, (…, T, d)."""
        return x

    def attention(self, place: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (…, H, T, T) and outputs (…, H, T, d_v) of the heads of a layer."""
        layer = self.cast[place]
        tokens = self.seen(layer, x)[..., None, :, :]
        query, key, value = projections(layer, tokens, self.rule)
        found = weights(layer, query, key, self.rule)
        return found, found @ value[..., layer.key_head, :, :]

    def forward(self: Any, place: int, x: np.ndarray) -> np.ndarray:
        """Inputs of the next layer, from those of this one, (…, T, d)."""
        heads = self.attention(place, x)[1]
        output = self.cast[place].matrices.output
        joined = heads.swapaxes(-3, -2).reshape(*x.shape[:-1], -1)
        return self.after(place, x, joined @ output.reshape(-1, output.shape[-1]))

    def passed(self: Any, tokens: np.ndarray) -> list[np.ndarray]:
        """Inputs of every layer, and what the last one returns, (T, d)."""
        inputs = [self.embedded(tokens)]
        for place in range(len(self.layers)):
            inputs.append(self.forward(place, inputs[-1]))
        return inputs


class Encoder(Stack):
    """A post-norm encoder, in single precision unless asked otherwise.

    Attributes:
        read: tensors by BERT's names.
        vocabulary: tokens to their numbers.
        predicts: whether the model predicts tokens.
    """

    causal = False
    ends = 1
    first = 0

    def __init__(self, path: Path, dtype: Any = np.float32) -> None:
        config = next(path.parent.glob("config.json"), None)
        with TemporaryDirectory() as folder:
            stored = path
            if path.suffix != ".safetensors":
                stored = Path(folder, "model.safetensors")
                save_file(tensors(path), stored)
            model = Model(stored, config)
            self.hold(layers(model, None if config else HEADS), dtype)
            floats = [name for name in model.shapes if not name.endswith("position_ids")]
            self.read = {renamed(name): model.read(name).astype(dtype) for name in floats}
        words = [START, ">", END, "?", *RESIDUES, MASK]
        listed = path.with_name("vocab.txt")
        if listed.is_file():
            words = listed.read_text(encoding="utf-8").split("\n")
        self.vocabulary = {word: number for number, word in enumerate(words)}
        self.predicts = "predictions.decoder.weight" in self.read

    def numbers(self, text: str) -> np.ndarray:
        """The tokens of a text between start and end."""
        parts = [*text]
        if f"{WIDER}.weight" in self.read:
            parts = re.findall(TOKEN, text)
        elif TYPES in self.read:
            parts = word_pieces(text, self.vocabulary)
        return np.array([self.vocabulary[part] for part in (START, *parts, END)])

    def embedded(self, tokens: np.ndarray) -> np.ndarray:
        """Inputs of the first layer, (T, d)."""
        skipped = 0 if TYPES in self.read else 2
        positions = self.read["embeddings.position_embeddings.weight"][skipped:]
        x = self.read["embeddings.word_embeddings.weight"][tokens] + positions[: len(tokens)]
        if TYPES in self.read:
            x = x + self.read[TYPES][0]
        x = self.norm(x, "embeddings.LayerNorm")
        return self.linear(x, WIDER) if f"{WIDER}.weight" in self.read else x

    def after(self, place: int, x: np.ndarray, attended: np.ndarray) -> np.ndarray:
        """Inputs of the next layer, from those of this one and the sum of its heads, (…, T, d)."""
        block = f"encoder.layer.{self.layers[place].number or 0}."
        x = x + attended + self.read[f"{block}attention.output.dense.bias"]
        x = self.norm(x, f"{block}attention.output.LayerNorm")
        inner = gelu(self.linear(x, f"{block}intermediate.dense"))
        return self.norm(x + self.linear(inner, f"{block}output.dense"), f"{block}output.LayerNorm")

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Logits of every token of the vocabulary, from what the last layer returns."""
        hidden = gelu(self.linear(x, "predictions.dense"))
        return self.linear(self.norm(hidden, "predictions.LayerNorm"), "predictions.decoder")

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.read[f"{name}.weight"].T + self.read[f"{name}.bias"]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return layer_norm(x, EPSILON) * self.read[f"{name}.weight"] + self.read[f"{name}.bias"]


def word_pieces(text: str, vocabulary: Container[str]) -> list[str]:
    """The tokens of a text in ASCII: BERT's lower-case WordPiece."""
    pieces = []
    for word in re.findall(r"\w+|[^\w\s]", text.lower()):
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next(end for end in ends if prefix + word[start:end] in vocabulary)
            pieces.append(prefix + word[start:end])
            start = end
    return pieces
