"""Weights that the ``entmax`` package on PyTorch gives, as a file that tests read.

``make peers`` compares what is installed with the file; ``python benchmarks/reference.py --renew``
writes it. Scores and weights are in double precision, thresholds by 100 bisections.
"""

import argparse
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).parents[1] / "tests" / "weights" / "entmax_reference.json"
BISECTIONS = 100
ALPHAS = {"4/3": 4 / 3, "1.25": 1.25, "1.5": 1.5, "2": 2.0}
TOLERANCE = 1e-14
"""Of a weight, between versions of the packages."""


def scores() -> list[list[float]]:
    """Rows of scores: a small one, normal ones of several scales, ties, one key.

    Rounded, so that a file holds them exactly.
    """
    rng = np.random.default_rng(0)
    drawn = [scale * rng.normal(size=n) for n, scale in ((5, 1.0), (12, 0.2), (12, 3.0), (40, 1.0))]
    fixed = [[-2.0, 0.0, 0.5], [0.0], [1.0, 1.0, 1.0, -4.0], [1e3, 1e3 - 0.25, 0.0], [-30.0, 30.0]]
    return [*fixed, *(np.round(row, 6).tolist() for row in drawn)]


def weights() -> dict[str, list[list[float]]]:
    """By the package's function, row by row."""
    import entmax
    import torch

    def bisected(alpha: float) -> Any:
        return lambda row: entmax.entmax_bisect(row, alpha=alpha, dim=-1, n_iter=BISECTIONS)

    functions = {"sparsemax": entmax.sparsemax, "entmax15": entmax.entmax15}
    functions |= {f"entmax_bisect {name}": bisected(alpha) for name, alpha in ALPHAS.items()}
    rows = [torch.tensor([row], dtype=torch.float64) for row in scores()]
    return {name: [call(row)[0].tolist() for row in rows] for name, call in functions.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="reference.py", description=__doc__)
    parser.add_argument("--renew", action="store_true", help="write the file")
    renew = parser.parse_args().renew
    found = weights()
    versions = {name: importlib.metadata.version(name) for name in ("entmax", "torch")}
    if renew:
        head = {"versions": versions, "bisections": BISECTIONS, "alphas": ALPHAS}
        text = json.dumps(head | {"scores": scores(), "weights": found}, indent=1)
        PATH.write_text(f"{text}\n", encoding="utf-8")
    kept = json.loads(PATH.read_text(encoding="utf-8"))
    worst = max(
        float(np.abs(np.subtract(row, expected)).max())
        for name, rows in kept["weights"].items()
        for row, expected in zip(found[name], rows, strict=True)
    )
    print(f"{versions} beside {kept['versions']} of the file: weights within {worst:.1g}")
    if worst > TOLERANCE:
        raise SystemExit(f"more than {TOLERANCE:g}: look why, then renew {PATH.name}")


if __name__ == "__main__":
    main()
