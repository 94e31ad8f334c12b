"""Heads of a layer that the others can replace, and the cost to the layer's output.

Head outputs o (H·d_v) have mean m and covariance Σ on calibration tokens. With precision
``Λ = (Σ + λD)⁻¹``, where D is Σ within each head and 0 between heads, the best linear prediction of
removed heads R from kept ones leaves the residual ``Λ_RR⁻¹ Λ_R· (o − m)``, of covariance
``Λ_RR⁻¹``. The prediction can be written into the output matrices of the kept heads, so that the
removed ones cost nothing. The error is that of the layer's output, as a share of its variance.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

FLOOR = 1e-9
"""Share of the mean square that is added to the ridge, so that constant outputs are allowed."""


class Calibration:
    """Second moments of head outputs on calibration tokens, and the cost of removals.

    Attributes:
        output: W_O by heads, (H, d_v, d).
        rows: its rows, (H·d_v, d).
        mean: m, (H·d_v,).
        covariance: Σ, (H·d_v, H·d_v).
        ridge: λD with λ = H·d_v/tokens, (H·d_v, H·d_v). In units of each head's own outputs it
            stays the same when a map moves between its values and W_O.
    """

    def __init__(self, output: np.ndarray):
        """Begin; :meth:`finish` takes the moments."""
        self.output = output
        self.rows = output.reshape(-1, output.shape[-1])
        self._products = self.rows @ self.rows.T

    def finish(self, first: np.ndarray, second: np.ndarray, tokens: int) -> None:
        """Take sums over tokens of o (H·d_v,) and of ooᵀ."""
        self.mean = first / tokens
        self.covariance = second / tokens
        self.covariance -= np.outer(self.mean, self.mean)
        head = np.repeat(range(len(self.output)), self.output.shape[1])
        blocks = np.where(head[:, None] == head, self.covariance, 0.0)
        squares = np.diag(second) / tokens
        floor = np.where(squares > 0, FLOOR * squares, 1.0)
        self.ridge = blocks * len(head) / tokens + np.diag(floor)

    def square(self, outputs: np.ndarray) -> float:
        """Sum of squares of what outputs (T, H·d_v) write."""
        return float(((outputs @ self.rows) ** 2).sum())

    @property
    def contributions(self) -> np.ndarray:
        """``tr W_O,hᵀ Σ_hg W_O,g``, (H, H): covariance of contributions, summed over features."""
        return self.written(self.covariance)

    def written(self, moment: np.ndarray) -> np.ndarray:
        """Second moment of contributions, (H, H), from the moment of outputs (H·d_v, H·d_v)."""
        shape = 2 * self.output.shape[:2]
        parts = self._products.reshape(shape), moment.reshape(shape)
        return np.asarray(np.einsum("hagb,hagb->hg", *parts))

    @property
    def alike(self) -> tuple[int, int]:
        """The two heads whose contributions correlate most; the second is cheaper to merge."""
        covariance = self.contributions
        scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        scale = np.where(scale > 0, scale, np.inf)
        alike = covariance / scale[:, None] / scale
        np.fill_diagonal(alike, -np.inf)
        first, second = map(int, np.unravel_index(np.argmax(alike), alike.shape))
        cost_of_first = self._cost(self.precision([first, second]), [0], [first])
        cost_of_second = self._cost(self.precision([second, first]), [0], [second])
        return (second, first) if cost_of_first < cost_of_second else (first, second)

    def precision(self, heads: Sequence[int]) -> np.ndarray:
        """Precision Λ of some heads, ignoring the others' outputs; semidefinite as a product."""
        columns = self.columns(heads)
        part = np.ix_(columns, columns)
        factor = cholesky(self.covariance[part] + self.ridge[part], lower=True)
        inverse = solve_triangular(factor, np.eye(len(columns)), lower=True)
        return inverse.T @ inverse

    def removal_order(self, most: float) -> list[int]:
        """Heads in order of removal, each the cheapest at its step.

        It ends before the calibration error exceeds a share ``most`` of the output's variance, or
        before the last head.
        """
        removed: list[int] = []
        remaining = list(range(len(self.output)))
        precision = self.precision(remaining)
        total = self.contributions.sum()
        while len(remaining) > 1:
            errors = [self._cost(precision, [*removed, head]) for head in remaining]
            best = int(np.argmin(errors))
            if errors[best] > most * total:
                break
            removed.append(remaining.pop(best))
        return removed

    def _cost(
        self, precision: np.ndarray, places: list[int], heads: list[int] | None = None
    ) -> float:
        """Calibration error of removing heads, by default those of their places in a precision."""
        columns = self.columns(places)
        residual = np.linalg.inv(precision[np.ix_(columns, columns)])
        of_all = self.columns(heads or places)
        return float((self._products[np.ix_(of_all, of_all)] * residual).sum())

    def columns(self, heads: Sequence[int]) -> np.ndarray:
        """Columns of outputs of some heads."""
        width = self.output.shape[1]
        return (np.asarray(heads)[:, None] * width + np.arange(width)).ravel()


class Removal:
    """Removals of the first 1, 2, … heads of a list, predicted from the remaining heads."""

    def __init__(self, calibration: Calibration, heads: Sequence[int], most: int) -> None:
        """Prepare removals of up to ``most`` heads; a single head is replaced by its mean."""
        self._most = most
        self._columns = calibration.columns(heads)
        self._width = calibration.output.shape[1]
        removed = most * self._width
        self._precision = calibration.precision(heads)[:, :removed]
        self._factor = cholesky(self._precision[:removed], lower=True)
        self._written = calibration.rows[self._columns[:removed]]

    def squares(self, outputs: np.ndarray) -> list[float]:
        """Squared changes of a layer's output, summed over tokens, by the number removed.

        Args:
            outputs: o − m, (T, H·d_v).
        """
        predicted = (outputs[:, self._columns] @ self._precision).T
        changes = []
        for count in range(1, self._most + 1):
            size = count * self._width
            residual = cho_solve((self._factor[:size, :size], True), predicted[:size])
            changes.append(float(((residual.T @ self._written[:size]) ** 2).sum()))
        return changes
