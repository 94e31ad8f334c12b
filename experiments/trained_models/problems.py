"""The models, and the sequences that the law composes or lets a model draw."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sims.study.referenced_files import checkpoint

from .encoders import MASK, RESIDUES, Encoder, encoder

Law = Mapping[str, Any]
"""The law of experiment.yaml, or a part of it."""
SENTENCES = Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8").splitlines()
"""English sentences, written for this project."""
TOKENS = ("all tokens", "no special tokens")
"""Which tokens count as queries and keys, in the order of the files."""


def read_model(law: Law, name: str) -> Encoder:
    """The model of that name.

    Raises:
        InputError: it is not installed.
    """
    return encoder(checkpoint(law["checkpoints"][name]))


def draw_sequence(
    law: Law, name: str, model: Encoder, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of a sequence, and the places (M,) at which the model sees its mask.

    A model that predicts no tokens sees none.
    """
    if name == "reactions":
        tokens = model.numbers(compose_reaction(law["reactions"], rng))
    elif name == "English text":
        text = " ".join(rng.choice(SENTENCES, law["sentences"], replace=False))
        tokens = model.numbers(text)
    else:
        tokens = draw_antibody(law["antibodies"], name, model, rng)
    inside = len(tokens) - 2
    count = max(1, round(law["masked"] * inside)) if model.predicts else 0
    return tokens, 1 + rng.choice(inside, count, replace=False)


def compose_reaction(parts: Mapping[str, list[str]], rng: np.random.Generator) -> str:
    """A reaction SMILES: a template filled in, and a reagent among the precursors in any order."""
    drawn = {name: options[rng.integers(len(options))] for name, options in parts.items()}
    left, right = drawn["core"].split("*")
    twice = {f"{name}2": part.replace("1", "2") for name, part in drawn.items()}
    text = drawn["templates"].format(left=left, right=right, **drawn, **twice)
    precursors, product = text.split(">>")
    mixed = rng.permutation(f"{precursors}.{drawn['reagent']}".split("."))
    return f"{'.'.join(mixed)}>>{product}"


def draw_antibody(law: Law, name: str, model: Encoder, rng: np.random.Generator) -> np.ndarray:
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


def mask(model: Encoder, tokens: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Tokens with the mask at some places."""
    out = tokens.copy()
    out[places] = model.vocabulary[MASK]
    return out
