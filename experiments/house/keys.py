"""Laws of keys and queries, by family, each of mean variance 1 over coordinates."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import ortho_group

from sims.problem.designs import table_rows
from sims.problem.tables import TABLES
from sims.study.study import Fields

FREEDOM = 5
"""Degrees of freedom of Student's t."""
CLUSTERS = 8
"""Components of the mixture, equally likely."""
BETWEEN = 0.7
"""Share of the clusters' centres in the variance of the keys."""
GAUSSIAN = ("isotropic", "decaying")


@dataclass(frozen=True)
class KeyLaw:
    """The law of the keys of a problem; queries have the same one, those of a table other rows.

    Attributes:
        family: isotropic, decaying, student, sphere, clusters, digits or text.
        root: of the covariance of Gaussian keys, (d, d).
        centres: of the clusters, (8, d), of mean square :data:`BETWEEN`.
        rows: of a table, from which keys are drawn, (N, d).
        held_out: rows of the table that are queries, (M, d).
    """

    family: str
    dimension: int
    root: np.ndarray | None = None
    centres: np.ndarray | None = None
    rows: np.ndarray | None = None
    held_out: np.ndarray | None = None

    def keys(
        self, rng: np.random.Generator, replicates: int, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distinct keys (R, n, d), and how often each was drawn (R, n).

        Rows of a table are drawn with replacement, equal ones are merged; zeros fill up.
        """
        if self.rows is None:
            points = self._points(rng, replicates * count)
            return points.reshape(replicates, count, -1), np.ones((replicates, count))
        points = np.zeros((replicates, count, self.dimension))
        times = np.zeros((replicates, count))
        for replicate in range(replicates):
            drawn = rng.integers(len(self.rows), size=count)
            distinct, counts = np.unique(drawn, return_counts=True)
            points[replicate, : len(distinct)] = self.rows[distinct]
            times[replicate, : len(distinct)] = counts
        return points, times

    def queries(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Queries (Q, d)."""
        if self.held_out is None:
            return self._points(rng, count)
        return self.held_out[rng.integers(len(self.held_out), size=count)]

    def _points(self, rng: np.random.Generator, count: int) -> np.ndarray:
        normal = rng.normal(size=(count, self.dimension))
        if self.family == "student":
            size = rng.chisquare(FREEDOM, size=(count, 1)) / (FREEDOM - 2)
            return normal / np.sqrt(size)
        if self.family == "sphere":
            length = np.linalg.norm(normal, axis=1, keepdims=True)
            return normal * self.dimension**0.5 / length
        if self.family == "clusters":
            assert self.centres is not None
            centres = self.centres[rng.integers(CLUSTERS, size=count)]
            return centres + (1 - BETWEEN) ** 0.5 * normal
        return normal if self.root is None else normal @ self.root.T

    def covariance(self) -> np.ndarray:
        """Covariance of Gaussian keys, (d, d)."""
        return np.eye(self.dimension) if self.root is None else self.root @ self.root.T

    def as_design(self) -> dict[str, Any]:
        """The law as ``sims decompose`` reads it."""
        if self.family in TABLES:
            return {"kind": "table", "name": self.family}
        if self.family == "student":
            scale = (FREEDOM - 2) / FREEDOM * np.eye(self.dimension)
            return {"kind": "student", "freedom": FREEDOM, "scale_matrix": scale.tolist()}
        if self.family == "sphere":
            return {"kind": "sphere", "radius": self.dimension**0.5}
        if self.family == "clusters":
            assert self.centres is not None
            within = (1 - BETWEEN) * np.eye(self.dimension)
            return {
                "kind": "mixture",
                "weights": [1 / CLUSTERS] * CLUSTERS,
                "means": self.centres.tolist(),
                "covariances": [within.tolist()] * CLUSTERS,
            }
        return {"kind": "gaussian", "covariance": self.covariance().tolist()}


def key_law(drawn: Fields, dimension: int) -> KeyLaw:
    """The law of the keys of a draw."""
    family = drawn["family"]
    rng = np.random.default_rng(drawn["design"])
    if family == "decaying":
        spectrum = np.arange(1, dimension + 1.0) ** -drawn["spectrum"]
        spectrum *= dimension / spectrum.sum()
        axes = ortho_group.rvs(dimension, random_state=rng)
        return KeyLaw(family, dimension, root=axes * spectrum**0.5)
    if family == "clusters":
        centres = rng.normal(size=(CLUSTERS, dimension))
        centres -= centres.mean(0)
        centres *= (BETWEEN / (centres**2).mean()) ** 0.5
        return KeyLaw(family, dimension, centres=centres)
    if family in TABLES:
        rows, held_out = table_rows(dimension, family)
        return KeyLaw(family, dimension, rows=rows, held_out=held_out)
    return KeyLaw(family, dimension)
