"""Trained encoders, ALBERT, RoBERTa and BERT, as NumPy passes."""

import re
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save_file
from scipy.special import erf

from sims.attention.attention import layer_norm, softmax
from sims.inspect import Model, layers

from .checkpoints import tensors

TOKEN = r"\[[^\]]+]|Br?|Cl?|>>|[NOSPFIbcnops().=#+\\/:~@?>*$-]|%[0-9]{2}|[0-9]"
"""Tokens of a reaction SMILES."""
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
HEADS = 8
"""Heads of the models whose files do not say it."""
EPSILON = 1e-12
"""Of LayerNorm."""


class Family(NamedTuple):
    """How a family of models names its tensors, and its tokens for start, end and mask.

    Attributes:
        layer: prefix of the tensors of layer i.
        embeddings: of tokens and positions, and their LayerNorm.
        token_types: embedding of token types; None without one.
        skipped: positions that no token has.
        block: of a layer: output bias, LayerNorm, the two maps of the MLP, LayerNorm.
        head: map, LayerNorm and map of the prediction; None without one.
        special: numbers of start, end and mask.
    """

    layer: str
    embeddings: tuple[str, str, str]
    token_types: str | None
    skipped: int
    block: tuple[str, str, str, str, str]
    head: tuple[str, str, str] | None
    special: tuple[int, int, int]


ALBERT = Family(
    "albert.encoder.albert_layer_groups.0.albert_layers.0.",
    (
        "albert.embeddings.word_embeddings",
        "albert.embeddings.position_embeddings",
        "albert.embeddings.LayerNorm",
    ),
    "albert.embeddings.token_type_embeddings",
    0,
    ("attention.dense", "attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm"),
    ("predictions.dense", "predictions.LayerNorm", "predictions.decoder"),
    (12, 13, 14),
)
ROBERTA = Family(
    "decoder.sentence_encoder.layers.{}.",
    (
        "decoder.sentence_encoder.embed_tokens",
        "decoder.sentence_encoder.embed_positions",
        "decoder.sentence_encoder.emb_layer_norm",
    ),
    None,
    2,
    ("self_attn.out_proj", "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm"),
    ("decoder.lm_head.dense", "decoder.lm_head.layer_norm", "decoder.lm_head"),
    (0, 2, 24),
)
BERT = Family(
    "encoder.layer.{}.",
    ("embeddings.word_embeddings", "embeddings.position_embeddings", "embeddings.LayerNorm"),
    "embeddings.token_type_embeddings",
    0,
    (
        "attention.output.dense",
        "attention.output.LayerNorm",
        "intermediate.dense",
        "output.dense",
        "output.LayerNorm",
    ),
    None,
    (101, 102, 103),
)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + erf(x / 2**0.5)) / 2


class Encoder:
    """A post-norm encoder, in single precision unless asked otherwise.

    Matrices of heads are read by :mod:`sims.inspect`.

    Attributes:
        layers: in the order in which they are passed; ALBERT's one layer twelve times.
    """

    def __init__(self, path: Path, dtype: Any = np.float32) -> None:
        config = path.with_name("config.json")
        with TemporaryDirectory() as folder:
            if path.suffix == ".safetensors":
                model, heads = Model(path), None
            else:
                save_file(tensors(path), Path(folder, "model.safetensors"))
                model, heads = Model(folder, config if config.is_file() else None), HEADS
            self.layers = [one for one in layers(model, heads) for _ in range(one.passes)]
            floats = [name for name in model.shapes if not name.endswith("position_ids")]
            self.read = {name: model.read(name).astype(dtype) for name in floats}
        self.family = family_of(self.read)
        if self.family is ROBERTA:
            words = [*"<>/?", *RESIDUES]  # four special tokens come first
        else:
            words = path.with_name("vocab.txt").read_text(encoding="utf-8").split("\n")
        self.vocabulary = {word: number for number, word in enumerate(words)}
        # (d, 3·H·d_k) and its bias, and W_O (H, d_v, d)
        self.heads = []
        for layer in self.layers:
            maps = [np.concatenate(heads, axis=1) for heads in layer.matrices[:3]]
            bias = np.concatenate(layer.biases, axis=None)
            parts = (np.concatenate(maps, axis=1), bias, layer.matrices.output)
            self.heads.append([part.astype(dtype) for part in parts])

    def numbers(self, text: str) -> np.ndarray:
        """The tokens of a text between start and end."""
        start, end, _ = self.family.special
        parts = [*text]
        if self.family is BERT:
            parts = word_pieces(text, self.vocabulary)
        elif self.family is ALBERT:
            parts = re.findall(TOKEN, text)
        return np.array([start, *(self.vocabulary[part] for part in parts), end])

    def embedded(self, tokens: np.ndarray) -> np.ndarray:
        """Inputs of the first layer, (T, d)."""
        words, positions, norm = self.family.embeddings
        x = self.read[f"{words}.weight"][tokens]
        x = x + self.read[f"{positions}.weight"][self.family.skipped :][: len(tokens)]
        if self.family.token_types:
            x = x + self.read[f"{self.family.token_types}.weight"][0]
        x = self.norm(x, norm)
        if self.family is ALBERT:
            return self.linear(x, "albert.encoder.embedding_hidden_mapping_in")
        return x

    def attention(self, place: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (…, H, T, T) and outputs (…, H, T, d_v) of the heads of a layer."""
        maps, bias, output = self.heads[place]
        joined = (x @ maps + bias).reshape(*x.shape[:-1], 3, len(output), -1)
        query, key, value = np.moveaxis(joined.swapaxes(-4, -2), -3, 0)
        scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
        weights = softmax(scores)
        return weights, weights @ value

    def after(self, place: int, x: np.ndarray, attended: np.ndarray) -> np.ndarray:
        """Inputs of the next layer, from those of this one and the sum of its heads, (…, T, d)."""
        prefix = self.family.layer.format(place)
        output, first, inner, outer, last = (prefix + name for name in self.family.block)
        x = self.norm(x + attended + self.read[f"{output}.bias"], first)
        return self.norm(x + self.linear(gelu(self.linear(x, inner)), outer), last)

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Logits of every token of the vocabulary, from what the last layer returns."""
        assert self.family.head is not None, "the model predicts no tokens"
        dense, norm, decoder = self.family.head
        return self.linear(self.norm(gelu(self.linear(x, dense)), norm), decoder)

    def passed(self, tokens: np.ndarray) -> list[np.ndarray]:
        """Inputs of every layer, and what the last one returns, (T, d)."""
        inputs = [self.embedded(tokens)]
        for place, (*_, output) in enumerate(self.heads):
            _, heads = self.attention(place, inputs[-1])
            inputs.append(self.after(place, inputs[-1], (heads @ output).sum(0)))
        return inputs

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.read[f"{name}.weight"].T + self.read[f"{name}.bias"]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return layer_norm(x, EPSILON) * self.read[f"{name}.weight"] + self.read[f"{name}.bias"]


def family_of(names: Mapping[str, np.ndarray]) -> Family:
    """The family of a model, by the names of its tensors."""
    families = (ALBERT, ROBERTA, BERT)
    return next(one for one in families if f"{one.embeddings[0]}.weight" in names)


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


@cache
def encoder(path: Path) -> Encoder:
    """An encoder, read once a process."""
    return Encoder(path)
