"""Errors of scikit-learn's regressors on held-out rows, for comparison with heads."""

import warnings
from typing import Any

import numpy as np

from sims.advise.reading import Data

FOLDS = 10
"""Maximum number of folds."""
GAUSSIAN_PROCESS = 300
"""Maximum number of rows of a fold for the Gaussian process."""
LENGTHS = 30
"""Maximum number of columns with separate lengths in the Gaussian process."""


def baselines(
    data: Data, choosers: np.ndarray, reporters: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """Losses on the reporting rows, (Q,), by name.

    The selection rows choose the number of nearest neighbours; ridge's penalty comes from its
    training rows. The Gaussian process (squared exponential with a length per column, or a single
    one if columns are many; white noise) maximises the likelihood. Folds consist of complete
    groups.
    """
    from sklearn.dummy import DummyRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from sklearn.neighbors import KNeighborsRegressor

    x = data.features
    y = data.outputs
    groups = data.groups
    counts = [k for k in (1, 2, 5, 10, 20, 50) if k < len(choosers) // 2]
    inner = GroupKFold(min(5, len(np.unique(groups[choosers]))))
    search = GridSearchCV(KNeighborsRegressor(), {"n_neighbors": counts}, cv=inner)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # folds without a score
        search.fit(x[choosers], y[choosers], groups=groups[choosers])
    columns = x.shape[1]
    length = columns**0.5 * (np.ones(columns) if columns <= LENGTHS else 1.0)
    kernel = ConstantKernel() * RBF(length) + WhiteKernel(0.3)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    rng = np.random.default_rng([seed, 4])
    fitted = min(GAUSSIAN_PROCESS, len(x) * (FOLDS - 1) // FOLDS)
    models: dict[str, Any] = {
        f"nearest neighbours, k = {search.best_params_['n_neighbors']}": search.best_estimator_,
        "ridge": RidgeCV(np.geomspace(1e-2, 1e4, 13)),
        "mean of the outputs": DummyRegressor(),
        f"Gaussian process, {fitted} rows" + ", one length" * (columns > LENGTHS): process,
    }
    predictions = {name: np.zeros((len(x), y.shape[1])) for name in models}
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of convergence
        part = rng.permutation(choosers)[:GAUSSIAN_PROCESS]
        process.fit(x[part], y[part])
        process.set_params(kernel=process.kernel_, optimizer=None)
        for train, test in GroupKFold(min(FOLDS, len(np.unique(groups)))).split(x, y, groups):
            for name, model in models.items():
                rows = train if model is not process else rng.permutation(train)[:GAUSSIAN_PROCESS]
                model.fit(x[rows], y[rows])
                predictions[name][test] = model.predict(x[test]).reshape(len(test), -1)
    losses = {}
    for name, predicted in predictions.items():
        losses[name] = ((predicted - y) ** 2).mean(1)[reporters]
    return losses
