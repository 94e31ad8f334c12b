"""Attention heads as an estimator of scikit-learn."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from sims.advise.heads import RULES, diverse_frames, predict_heads, temperature_grid
from sims.base.checks import check_within
from sims.base.errors import InputError, one_of

CHOOSERS = 300
"""Maximum number of rows that choose the temperature."""
BATCH = 500
"""Number of rows predicted at once."""


@dataclass(eq=False, repr=False)
class HeadsRegressor(RegressorMixin, BaseEstimator):
    """Mean prediction of attention heads with random orthogonal frames, for scikit-learn.

    A head weighs the outputs of all training rows by its rule, at projections of the standardised
    columns. One head of full width with the gaussian rule is Nadaraya-Watson regression.

    Args:
        rule: weight rule, see :mod:`sims.advise.heads`.
        heads: H, number of heads.
        width: d_k, dimension of a head; None is the number of columns.
        temperature: s; the gaussian kernel's bandwidth is √s. None chooses the temperature of
            least leave-one-out error.
        random_state: seed of the frames.

    Attributes:
        frames_: (H, d, d_k), for standardised columns.
        temperature_: the temperature used.

    Raises:
        InputError: a parameter is outside its range.
    """

    rule: str = "gaussian"
    heads: int = 1
    width: int | None = None
    temperature: float | None = None
    random_state: Any = 0

    def __sklearn_tags__(self) -> Tags:
        """Tags of scikit-learn: several outputs; narrow heads may miss what matters."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.width is not None
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Heads with keys at the rows of X (n, d) and outputs y, (n,) or (n, o)."""
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, ensure_min_samples=2)
        self.columns_ = StandardScaler()
        features = self.columns_.fit_transform(X)
        dimension = features.shape[1]
        width = dimension if self.width is None else self.width
        if self.rule not in RULES:
            raise InputError("rule", self.rule, one_of(RULES, self.rule))
        check_within("width", width, 1, dimension)
        if self.heads < 1:
            raise InputError("heads", self.heads, "1 or more")
        if self.temperature is not None and not 0 < self.temperature < np.inf:
            raise InputError("temperature", self.temperature, "positive and finite")
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31)
        self.frames_ = diverse_frames(dimension, self.heads, width, int(seed))
        self.features_ = features
        self.shape_ = y.shape[1:]
        self.outputs_ = y.reshape(len(y), -1).astype(float)
        self.temperature_ = self.temperature or self._choose_temperature()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions (m,) or (m, o) for the rows of X (m, d)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        queries = self.columns_.transform(X)
        grid = np.array([self.temperature_])
        batches = []
        for rows in gen_batches(len(X), BATCH):
            batches.append(self._predict(queries[rows], False, grid)[0])
        return np.concatenate(batches).reshape(len(X), *self.shape_)

    def _predict(self, queries: np.ndarray, barred: Any, grid: np.ndarray) -> np.ndarray:
        """Predictions (S, Q, o) for queries (Q, d)."""
        known = self.features_, self.outputs_
        made = predict_heads(queries, *known, barred, self.frames_, {self.rule: grid})
        return np.asarray(made[self.rule].mean(1))

    def _choose_temperature(self) -> float:
        """Temperature of least leave-one-out error of the ensemble."""
        count = len(self.features_)
        rows = np.random.default_rng(0).permutation(count)[:CHOOSERS]
        barred = rows[:, None] == np.arange(count)
        queries = self.features_[rows]
        frame = self.frames_[0]
        grid = temperature_grid(queries @ frame, self.features_ @ frame, barred)[self.rule]
        errors = self._predict(queries, barred, grid) - self.outputs_[rows]
        return float(grid[(errors**2).mean((1, 2)).argmin()])
