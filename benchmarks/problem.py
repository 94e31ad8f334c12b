"""The work that is timed, the same for every contestant."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from sims.problem import DESIGNS, TARGETS, Heads, Task, gaussian_queries


@dataclass(frozen=True)
class Work:
    """H heads of width d_k in R^d, n keys, Q queries; R replicates a batch.

    One kernel evaluation is one K_h(x, X_i); all head-pair sums and the draws themselves are part
    of the work.
    """

    heads: int = 8
    width: int = 4
    dimension: int = 32
    n: int = 1024
    queries: int = 64
    replicates: int = 64
    rule: Any = "gaussian"
    bandwidth: float = 1.0
    noise_sd: float = 0.5

    def evaluations(self, replicates: int) -> int:
        """Kernel evaluations in so many replicates."""
        return replicates * self.queries * self.heads * self.n

    def problem(self) -> tuple[Task, Heads, jax.Array]:
        """Orthogonal heads (H·d_k ≤ d), an isotropic design, a smooth target of 64 cosines."""
        basis = jax.random.orthogonal(jax.random.key(1), self.dimension, dtype=jnp.float64)
        lines = basis[:, : self.heads * self.width]
        frames = lines.reshape(self.dimension, self.heads, self.width).transpose(1, 0, 2)
        task = Task(
            DESIGNS["isotropic"](self.dimension),
            TARGETS["rbf"](self.dimension, lengthscale=4.0, features=64),
            self.noise_sd,
        )
        queries = gaussian_queries(self.dimension, self.queries, 0.5, seed=2)
        return task, Heads(frames, self.rule, self.bandwidth), queries
