"""The models, and the sequences that the law composes or lets a model draw."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np

from sims.base.errors import InputError, one_of
from sims.study.referenced_files import checkpoint, digest_of

from .decoder import Decoder
from .encoders import MASK, RESIDUES, Encoder

Law = Mapping[str, Any]
"""The law of experiment.yaml, or a part of it."""
TEMPLATES = Path(__file__).with_name("reactions.txt").read_text(encoding="utf-8").splitlines()
"""Reactions, in which {acyl}, {alkyl} and {aryl} are drawn, {left} and {right} end a core."""
TOKENS = ("all tokens", "no special tokens")
"""Which tokens count as queries and keys, in the order of the files."""
COMPOSED = ("reactions", "heavy chains", "light chains")
"""Texts that the law composes, or lets a model draw."""
Model = Encoder | Decoder
LAYOUTS: dict[str, type[Model]] = {"encoder": Encoder, "decoder": Decoder}
DOCUMENTATION = "documentation"
"""The text that is Python's own, ``pydoc_data.topics``."""
QUOTES = str.maketrans("“”‘’–—", "\"\"''--")


def read_model(law: Law, name: str) -> Model:
    """The model of that name, read once a process.

    Raises:
        InputError: it is not installed, is another file, or has a layout that is not read.
    """
    row = law["checkpoints"][name]
    return opened(checkpoint(row["file"]), row["layout"], row["sha256"])


@cache
def opened(path: Path, layout: str, digest: str) -> Model:
    """The model in a file with that digest."""
    if (found := digest_of(path)) != digest:
        raise InputError(f"sha256 of {path}", found, digest)
    if layout not in LAYOUTS:
        raise InputError(f"layout of {path}", layout, one_of(LAYOUTS, layout))
    return LAYOUTS[layout](path)


@cache
def read_text(name: str) -> str:
    """A text in ASCII: Python's documentation, or a file in the folder of the models."""
    text = "\n".join(topics.values())
    if name != DOCUMENTATION:
        text = checkpoint(name).read_text(encoding="utf-8")
    return text.translate(QUOTES).encode("ascii", "ignore").decode()


def made_of(law: Law, name: str) -> str:
    """The digest of a model's file, with that of the text that it reads."""
    row = law["checkpoints"][name]
    file = digest_of(checkpoint(row["file"]))
    if row["text"] in COMPOSED:
        return file
    return f"{file}, {row['text']} {hashlib.sha256(read_text(row['text']).encode()).hexdigest()}"


@cache
def windows(model: Model, text: str, length: int) -> np.ndarray:
    """A text's sequences of so many tokens, special tokens among them, one after the other."""
    tokens = model.numbers(read_text(text))
    start, inside, end = np.split(tokens, (model.ends, len(tokens) - model.ends))
    width = length - 2 * model.ends
    rows = inside[: len(inside) // width * width].reshape(-1, width)
    return np.array([[*start, *row, *end] for row in rows])


def draw_sequences(
    law: Law, name: str, model: Model, rng: np.random.Generator, count: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The tokens of some sequences, and the places (M,) at which the model sees its mask.

    Sequences of a text are different ones. Models of the next token, and those that predict none,
    see no mask.
    """
    text = law["checkpoints"][name]["text"]
    if text not in COMPOSED:
        every = [*rng.choice(windows(model, text, law["tokens"]), count, replace=False)]
    elif text == "reactions":
        every = [model.numbers(compose_reaction(law[text], rng)) for _ in range(count)]
    else:
        every = [draw_antibody(law["antibodies"], text, model, rng) for _ in range(count)]
    is_masked = model.predicts and not model.causal
    sequences = []
    for tokens in every:
        inside = len(tokens) - 2 * model.ends
        masked = max(1, round(law["masked"] * inside)) if is_masked else 0
        sequences.append((tokens, model.ends + rng.choice(inside, masked, replace=False)))
    return sequences


def compose_reaction(parts: Mapping[str, list[str]], rng: np.random.Generator) -> str:
    """A reaction SMILES: a template filled in, and a reagent among the precursors in any order."""
    parts = {"template": TEMPLATES, **parts}
    drawn = {name: options[rng.integers(len(options))] for name, options in parts.items()}
    left, right = drawn["core"].split("*")
    twice = {f"{name}2": part.replace("1", "2") for name, part in drawn.items()}
    text = drawn["template"].format(left=left, right=right, **drawn, **twice)
    precursors, product = text.split(">>")
    mixed = rng.permutation(f"{precursors}.{drawn['reagent']}".split("."))
    return f"{'.'.join(mixed)}>>{product}"


def draw_antibody(law: Law, name: str, model: Model, rng: np.random.Generator) -> np.ndarray:
    """The tokens of a public chain whose residues the model has drawn anew, some at a time."""
    starts = law[name]
    residues = [model.vocabulary[letter] for letter in RESIDUES]
    tokens = model.numbers(starts[rng.integers(len(starts))])
    inside = len(tokens) - 2
    for _ in range(law["rounds"]):
        places = 1 + rng.choice(inside, round(law["share"] * inside), replace=False)
        last = model.passed(mask(model, tokens, places))[-1]
        logits = model.scores(last[places])[:, residues]
        # the largest of logits with Gumbel noise is a draw from their softmax
        tokens[places] = np.array(residues)[(logits + rng.gumbel(size=logits.shape)).argmax(1)]
    return tokens


def mask(model: Model, tokens: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Tokens with the mask at some places, if there are any."""
    out = tokens.copy()
    if len(places):
        out[places] = model.vocabulary[MASK]
    return out
