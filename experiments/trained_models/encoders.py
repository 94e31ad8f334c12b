"""Trained encoders, ALBERT, RoBERTa and BERT, as NumPy passes."""

import re
import unicodedata
from collections.abc import Mapping
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
        within: prefix of the tensors of the encoder, and of layer i.
        embeddings: of tokens and positions, and their LayerNorm.
        skipped: positions that no token has.
        block: of a layer: output bias, LayerNorm, the two maps of the MLP, LayerNorm.
        head: map, LayerNorm and map of the prediction; None without one.
        special: numbers of start, end and mask.
    """

    within: tuple[str, str]
    embeddings: tuple[str, str, str]
    skipped: int
    block: tuple[str, str, str, str, str]
    head: tuple[str, str, str] | None
    special: tuple[int, int, int]


ALBERT = Family(
    ("albert.embeddings.", "albert.encoder.albert_layer_groups.0.albert_layers.0."),
    ("word_embeddings", "position_embeddings", "LayerNorm"),
    0,
    ("attention.dense", "attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm"),
    ("predictions.dense", "predictions.LayerNorm", "predictions.decoder"),
    (12, 13, 14),
)
ROBERTA = Family(
    ("decoder.sentence_encoder.", "decoder.sentence_encoder.layers.{}."),
    ("embed_tokens", "embed_positions", "emb_layer_norm"),
    2,
    ("self_attn.out_proj", "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm"),
    ("decoder.lm_head.dense", "decoder.lm_head.layer_norm", "decoder.lm_head"),
    (0, 2, 24),
)
BERT = Family(
    ("embeddings.", "encoder.layer.{}."),
    ("word_embeddings", "position_embeddings", "LayerNorm"),
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
    return np.asarray(x * (1 + erf(x / 2**0.5)) / 2)


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
            flat = [m.swapaxes(0, 1).reshape(m.shape[1], -1) for m in layer.matrices[:3]]
            bias = np.concatenate([*map(np.ravel, layer.biases)])
            parts = np.concatenate(flat, 1), bias, layer.matrices.output
            self.heads.append([part.astype(dtype) for part in parts])

    def numbers(self, text: str) -> np.ndarray:
        """The tokens of a text between start and end."""
        start, end, _ = self.family.special
        if self.family is BERT:
            return np.array([start, *word_pieces(text, self.vocabulary), end])
        parts = re.findall(TOKEN, text) if self.family is ALBERT else text
        return np.array([start, *(self.vocabulary[part] for part in parts), end])

    def embedded(self, tokens: np.ndarray) -> np.ndarray:
        """Inputs of the first layer, (T, d)."""
        words, positions, norm = (self.family.within[0] + name for name in self.family.embeddings)
        x = self.read[f"{words}.weight"][tokens]
        x = x + self.read[f"{positions}.weight"][self.family.skipped :][: len(tokens)]
        if self.family is ROBERTA:
            return self.norm(x, norm)
        x = self.norm(
            x + self.read[f"{self.family.within[0]}token_type_embeddings.weight"][0], norm
        )
        if self.family is BERT:
            return x
        return self.linear(x, "albert.encoder.embedding_hidden_mapping_in")

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
        prefix = self.family.within[1].format(place)
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
        return np.asarray(x @ self.read[f"{name}.weight"].T + self.read[f"{name}.bias"])

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return layer_norm(x, EPSILON) * self.read[f"{name}.weight"] + self.read[f"{name}.bias"]


def family_of(names: Mapping[str, np.ndarray]) -> Family:
    """The family of a model, by the names of its tensors."""
    families = (ALBERT, ROBERTA, BERT)
    return next(one for one in families if f"{one.within[0]}{one.embeddings[0]}.weight" in names)


def word_pieces(text: str, vocabulary: Mapping[str, int]) -> list[int]:
    """The numbers of a text's tokens: BERT's lower-case WordPiece."""
    plain = unicodedata.normalize("NFD", text.lower())
    spaced = "".join(
        c if c.isalnum() else f" {c} " for c in plain if unicodedata.category(c) != "Mn"
    )
    numbers = []
    for word in spaced.split():
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next(end for end in ends if prefix + word[start:end] in vocabulary)
            numbers.append(vocabulary[prefix + word[start:end]])
            start = end
    return numbers


@cache
def encoder(path: Path) -> Encoder:
    """An encoder, read once a process."""
    return Encoder(path)
