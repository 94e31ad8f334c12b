"""Trained causal decoders of LLaMA's layout, as NumPy passes: RMS norm, RoPE, SwiGLU."""

import re
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from sims.inspect import Model, layers
from sims.inspect.gguf_file import open_reader
from sims.inspect.layer import Layer
from sims.inspect.patterns import rule_of

from .encoders import Stack

WORDS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?\d+| ?[^\sA-Za-z\d]+|\s+(?!\S)|\s+")
"""Words of a text in ASCII, as GPT-2 takes it apart."""
BYTES = str.maketrans(" \n\t", "ĠĊĉ")
"""The letters that stand for white space."""


class Decoder(Stack):
    """A pre-norm decoder, in single precision unless asked otherwise.

    Queries and keys of heads are turned by their positions; query heads share key heads.

    Attributes:
        read: tensors but those of heads, by the names of the file.
        first: the first query that counts; those before it see few tokens.
    """

    causal = True
    predicts = True
    ends = 0
    first = 64

    def __init__(self, path: Path, dtype: Any = np.float32) -> None:
        model = Model(path)
        self.path = path
        self.rule = rule_of(model.config)
        self.epsilon = model.config["rms_norm_eps"]
        self.hold(layers(model), dtype)
        others = [name for name in model.shapes if "attn" not in name]
        self.read = {name: model.read(name).astype(dtype) for name in others}

    def numbers(self, text: str) -> np.ndarray:
        """The tokens of a text in ASCII: byte-level BPE, in which a digit is a word."""
        merged = cache(self.merged)
        words = chain.from_iterable(map(WORDS.findall, re.split(r"(\d)", text)))
        return np.concatenate([merged(word) for word in words])

    def merged(self, word: str) -> list[int]:
        """The tokens of a word: the pair of the lowest rank becomes one, again and again."""
        vocabulary, merges = tokenizer(self.path)
        parts = [*word.translate(BYTES)]
        while len(parts) > 1:
            ranks = [merges.get(" ".join(pair), len(merges)) for pair in pairwise(parts)]
            place = int(np.argmin(ranks))
            if ranks[place] == len(merges):
                break
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return [vocabulary[part] for part in parts]

    def embedded(self, tokens: np.ndarray) -> np.ndarray:
        """Inputs of the first layer, (T, d)."""
        return self.read["token_embd.weight"][tokens]

    def seen(self, layer: Layer, x: np.ndarray) -> np.ndarray:
        """What the heads of a layer see of its inputs, (…, T, d)."""
        return self.norm(x, layer.gain).astype(x.dtype)

    def after(self, place: int, x: np.ndarray, attended: np.ndarray) -> np.ndarray:
        """Inputs of the next layer, from those of this one and the sum of its heads, (…, T, d)."""
        block = f"model.layers.{self.layers[place].number}.ffn_"
        names = ("norm", "gate", "up", "down")
        norm, gate, up, down = (self.read[f"{block}{name}.weight"] for name in names)
        x = x + attended
        hidden = self.norm(x, norm)
        opened = hidden @ gate.T
        return x + (opened * expit(opened) * (hidden @ up.T)) @ down.T

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Logits of the next token, from what the last layer returns."""
        embedding = self.read["token_embd.weight"]
        output = self.read.get("output.weight", embedding)
        return self.norm(x, self.read["output_norm.weight"]) @ output.T

    def norm(self, x: np.ndarray, gain: np.ndarray | None) -> np.ndarray:
        """Tokens (…, d) over their root mean square, times a gain."""
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.epsilon) * gain


@cache
def tokenizer(path: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Tokens of a GGUF file to their numbers, and pairs that become one, "a b", to their ranks."""
    fields = open_reader(path).fields
    lists = [fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges")]
    tokens, merges = (dict(zip(each, range(len(each)), strict=True)) for each in lists)
    return tokens, merges
