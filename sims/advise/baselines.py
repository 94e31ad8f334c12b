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
    splitter = GroupKFold(min(FOLDS, len(np.unique(data.groups))))
    folds = [*splitter.split(data.features, data.outputs, data.groups)]
    fitted = min(GAUSSIAN_PROCESS, *(len(train) for train, _ in folds))
    losses = {}
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # scores, shapes
        for name, model in _models(data.take(choosers), fitted, seed).items():
            made = cross_val_predict(model, data.features, data.outputs, cv=folds)
            losses[name] = ((made.reshape(data.outputs.shape) - data.outputs) ** 2).mean(1)
    return losses


def _models(selection: Data, fitted: int, seed: int) -> dict[str, Any]:
    """Regressors by name; the Gaussian process is fitted to so many rows of a fold."""
    x = selection.features
    y = selection.outputs
    inner = GroupKFold(min(5, len(np.unique(selection.groups))))
    counts = [k for k in (1, 2, 5, 10, 20, 50) if k < len(x) // 2]
    neighbours = GridSearchCV(KNeighborsRegressor(), {"n_neighbors": counts}, cv=inner)
    best = neighbours.fit(x, y, groups=selection.groups).best_estimator_
    columns = x.shape[1]
    length = columns**0.5 * (np.ones(columns) if columns <= LENGTHS else 1.0)
    kernel = ConstantKernel() * RBF(length) + WhiteKernel(0.3)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    process.fit(x[:GAUSSIAN_PROCESS], y[:GAUSSIAN_PROCESS])
    process.set_params(kernel=process.kernel_, optimizer=None)
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
        "gradient boosting": MultiOutputRegressor(boosting),
    }
