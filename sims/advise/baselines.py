"""Errors of scikit-learn's regressors on held-out rows, for comparison with heads."""

import warnings
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor

from sims.advise.reading import Data

FOLDS = 10
"""Maximum number of folds."""
GAUSSIAN_PROCESS = 300
"""Maximum number of rows of a fold for the Gaussian process."""
LENGTHS = 30
"""Maximum number of columns with separate lengths in the Gaussian process."""


def baselines(data: Data, choosers: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Losses on all rows, (n,), by name; folds consist of complete groups.

    The selection rows choose the number of nearest neighbours; ridge's penalty comes from its
    training rows. The Gaussian process (squared exponential with a length per column, or a single
    one if columns are many; white noise) maximises the likelihood on selection rows.
    """
    x = data.features
    y = data.outputs
    groups = data.groups
    splitter = GroupKFold(min(FOLDS, len(np.unique(groups))))
    folds = [*splitter.split(x, y, groups)]
    fitted = min(GAUSSIAN_PROCESS, *(len(train) for train, _ in folds))
    losses = {}
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # scores, convergence
        for name, model in _models(data, choosers, fitted, seed).items():
            several = y.shape[1] > 1 and isinstance(model, GradientBoostingRegressor)
            model = MultiOutputRegressor(model) if several else model
            made = cross_val_predict(model, x, y.squeeze(), cv=folds)
            losses[name] = ((made.reshape(y.shape) - y) ** 2).mean(1)
    return losses


def _models(data: Data, choosers: np.ndarray, fitted: int, seed: int) -> dict[str, Any]:
    """Regressors by name; the Gaussian process is fitted to so many rows of a fold."""
    x = data.features[choosers]
    y = data.outputs[choosers]
    groups = data.groups[choosers]
    inner = GroupKFold(min(5, len(np.unique(groups))))
    counts = [k for k in (1, 2, 5, 10, 20, 50) if k < len(x) // 2]
    neighbours = GridSearchCV(KNeighborsRegressor(), {"n_neighbors": counts}, cv=inner)
    neighbours.fit(x, y, groups=groups)
    columns = x.shape[1]
    length = columns**0.5 * (np.ones(columns) if columns <= LENGTHS else 1.0)
    kernel = ConstantKernel() * RBF(length) + WhiteKernel(0.3)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    process.fit(x[:GAUSSIAN_PROCESS], y[:GAUSSIAN_PROCESS])
    process.set_params(kernel=process.kernel_, optimizer=None)
    best = neighbours.best_estimator_
    part = BaggingRegressor(process, 1, max_samples=fitted, bootstrap=False, random_state=seed)
    boosting = GradientBoostingRegressor(
        n_estimators=200, max_depth=4, subsample=0.5, max_features="sqrt", random_state=seed
    )
    return {
        f"nearest neighbours, k = {best.n_neighbors}": best,
        "ridge": RidgeCV(np.geomspace(1e-2, 1e4, 13)),
        "mean of the outputs": DummyRegressor(),
        f"Gaussian process, {fitted} rows" + ", one length" * (columns > LENGTHS): part,
        "random forest": RandomForestRegressor(50, max_features=1 / 3, random_state=seed),
        "gradient boosting": boosting,
    }
