"""Signs that held-out rows are known from others: copies, clusters of rows, dependent errors."""

import math

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

REMEDY = "Name rows that belong together (a person, a place, a block of time) with --groups."
"""What to do about a sign."""
EXACT = 1e-9
"""Distance within which rows are equal."""
NEAREST = 0.05
"""Largest distance of near copies, in standard deviations."""
GAP = 3.0
"""Ratio of the radii at the upper and lower end of a gap."""
FILLED = 1.5
"""Largest ratio of the numbers of pairs within these radii; it is about 3 or more without a gap."""
FEWEST_PAIRS = 15
"""Minimum number of near pairs that show a gap."""
MUCH = 0.2
"""Share of the rows in a single cluster from which near rows are no copies."""
MANY_VALUES = 20
"""Number of values of a column from which equal values are no chance."""
SHARE = 0.02
"""Share of the rows, or of the outputs' variance, from which a sign counts."""
WORSE = 1.25
"""Ratio of the errors without clusters and without rows from which clusters count."""
CORRELATED = 0.2
"""Correlation from which the errors of neighbouring rows count as dependent."""
CLEAR = 4.0
"""Standard errors from which a sign counts."""
FEWEST_ROWS = 40
"""Minimum number of distinct rows for a correlation in order."""
APART = 10
"""Rows that are more than this many places apart are not near in order."""
KNOTS = 30
"""Maximum number of knots of a feature's spline."""
SLOW = 10
"""Number of knots of the spline of the order."""
DEARER = 2.5
"""Standard errors from which leaving out clusters counts as worse."""
FEW_ORDERS = 4
"""Number of features up to which rows are looked at in the order of each without repeats."""
FEW_COLUMNS = 30
"""Number of features up to which the effect of each is a spline, not a line."""


def near_pairs(
    points: np.ndarray, groups: np.ndarray, radius: float = GAP * NEAREST
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (2, P) of rows of different groups within a radius, and distances (P,)."""
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray").T
    first, second = pairs = pairs[:, groups[pairs[0]] != groups[pairs[1]]]
    return pairs, np.linalg.norm(points[first] - points[second], axis=1)


def find_gap(distances: np.ndarray) -> float:
    """Largest distance below a gap in the distances of pairs; :data:`EXACT` without a gap.

    The number of pairs within a radius r grows at least as r. A radius t of at most
    :data:`NEAREST` is below a gap if hardly more pairs are within 3 t than within t.
    """
    radii = np.geomspace(NEAREST, EXACT, 60)
    below, within = np.searchsorted(np.sort(distances), [radii, GAP * radii])
    gaps = radii[(below >= FEWEST_PAIRS) & (within <= FILLED * below)]
    return float(gaps.max(initial=EXACT))


def find_clusters(points: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Cluster (n,) of every row, distances of the pairs in a cluster, and the largest allowed.

    A chain of pairs connects the rows of a cluster. A gap that leaves much of the table in one
    cluster, as with heavy tails, is none.
    """
    pairs, distances = near_pairs(points, groups)
    count = len(points)
    for nearest in (find_gap(distances), EXACT):
        near = distances <= nearest
        graph = coo_array((distances[near] + 1, pairs[:, near]), (count, count))
        codes = connected_components(graph, directed=False)[1]
        if np.bincount(codes).max() <= MUCH * count:
            break
    return codes, distances[near], nearest


def find_copies(x: np.ndarray, y: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Mask (n,) of copies of earlier rows of other groups, and a note if rows are repeated.

    Rows are repeated if features and outputs agree to the same precision, below a gap in the
    distances of rows. They are copies if most pairs of equal outputs have equal features (20 rows
    or more). If features take many values (one takes 20, or all combinations are more than the
    rows), they are if nearly all equal features come with equal outputs, and if all rows are
    repeated as often. Otherwise, as in a truth table, they are counts.
    """
    features = x / x.shape[1] ** 0.5
    outputs = y / y.shape[1] ** 0.5
    codes, repeated, nearest = find_clusters(np.hstack([features, outputs]), groups)
    if not len(repeated):
        return np.zeros(len(x), bool), []
    sizes = np.bincount(codes)
    levels = [len(np.unique(column)) for column in x.T]
    like_outputs = np.sum(near_pairs(outputs, groups)[1] <= nearest)
    times = np.ones_like(sizes)  # that every kind is repeated
    if len(repeated) > 0.5 * like_outputs and len(sizes) >= MANY_VALUES:
        times = sizes
    elif max(levels) >= MANY_VALUES or math.prod(levels) > len(x):
        alike = len(repeated) > 0.9 * np.sum(near_pairs(features, groups)[1] <= nearest)
        times = sizes if alike else np.gcd.reduce(sizes)
    again = pd.Series(codes).groupby(codes).cumcount().to_numpy() >= (sizes // times)[codes]
    furthest = repeated.max()
    precision = "exactly" if furthest <= EXACT else f"within {furthest:.1g} standard deviations"
    note = f"{len(x) - len(sizes):,} of {len(x):,} rows repeat others {precision}; "
    return again, [f"{note}{again.sum():,} are left out."]


def find_dependence(x: np.ndarray, y: np.ndarray) -> list[str]:
    """Signs that errors of rows in file order, or near in x, are dependent; empty for clean rows.

    Args:
        x: features, (n, d), in file order.
        y: standardised outputs, (n, o).
    """
    signs = []
    x = x[:, np.ptp(x, axis=0) > 0]
    fine = [(column % 1).any() and len(np.unique(column)) >= MANY_VALUES for column in x.T]
    x = StandardScaler().fit_transform(x)
    orders = [("in file order", np.arange(len(x)))]
    if len(fine) <= FEW_ORDERS:
        name = "in x" if len(fine) == 1 else "in the order of a feature"
        for column in x.T:
            if len(fine) == 1 or len(np.unique(column)) == len(x):
                orders.append((name, np.argsort(column, kind="stable")))
    for name, order in orders:
        if correlation := correlate_neighbours(x[order], y[order]):
            signs.append(f"errors of neighbouring rows correlate by {correlation:.2f} {name}")
    if any(fine) and (ratio := compare_clusters(x, y)) > WORSE:
        signs.append(f"rows with nearly equal features lower the error {ratio:.1f} times")
    if signs:
        signs.append("so the errors hold only between such rows")
    return signs


def correlate_neighbours(x: np.ndarray, y: np.ndarray) -> float:
    """Largest correlation of the errors of neighbouring rows; 0 if none is clear.

    Errors are residuals of an additive model of the features and of a smooth function of the
    order. Rows of equal features count as one. The correlation does not count if errors of rows
    that are near in x, but not in order, correlate as well, or if outputs are smooth from row to
    row: then the model is wrong.
    """
    columns = x.shape[1]
    codes = np.unique(x, axis=0, return_inverse=True)[1].ravel()
    table = pd.DataFrame(np.hstack([x, y])).groupby(codes, sort=False).mean().to_numpy()
    x, y = np.split(table, [columns], axis=1)
    count = len(x)
    if count < FEWEST_ROWS or not columns:
        return 0.0
    splines = [make_splines(np.arange(float(count))[:, None], SLOW)]
    if columns <= FEW_COLUMNS:
        splines.append(make_splines(x, min(KNOTS, count // 6)))
    design = np.hstack([x, *splines])
    model = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-2, 1e4, 7)))
    queries, others = find_alike(x)
    largest = 0.0
    for output in y.T:
        errors = output - model.fit(design, output).predict(design)
        variance = errors.var()
        correlation = correlate(errors[1:], errors[:-1])
        if correlation <= max(CORRELATED, CLEAR / count**0.5):
            continue
        if correlation * variance <= SHARE * output.var():
            continue
        steps = np.diff(errors)
        wrong = max(correlate(steps[1:], steps[:-1]), correlate(errors[queries], errors[others]))
        if wrong < 0.5 * correlation:
            largest = max(largest, correlation)
    return largest


def make_splines(columns: np.ndarray, count: int) -> np.ndarray:
    """Cubic splines of every column with so many knots, between quantiles and even steps."""
    ramp = np.linspace(0, 1, count)
    knots = np.quantile(columns, ramp, axis=0)
    knots += np.linspace(columns.min(0), columns.max(0), count)  # distinct, unlike quantiles
    knots /= 2
    return np.asarray(SplineTransformer(knots=knots).fit_transform(columns))


def find_alike(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and for each the nearest in x that is not near in order; nearer than the next row."""
    order = np.arange(len(x))
    distances, near = NearestNeighbors(n_neighbors=2 * APART + 2).fit(x).kneighbors(x)
    apart = np.abs(near - order[:, None]) > APART
    first = order, apart.argmax(1)
    steps = np.linalg.norm(np.diff(x, axis=0, append=x[-2:-1]), axis=1)
    nearer = apart[first] & (distances[first] <= (1 + EXACT) * steps)
    return order[nearer], near[first][nearer]


def correlate(first: np.ndarray, second: np.ndarray) -> float:
    """Correlation of two series of mean 0; 0 for zeros."""
    size = np.linalg.norm(first) * np.linalg.norm(second)
    return float(first @ second / size) if size > 0 else 0.0


def compare_clusters(x: np.ndarray, y: np.ndarray) -> float:
    """Error without a row's cluster over that without the row; 1 if features do not cluster.

    Clusters are rows of nearly equal features, below a gap in their distances.
    """
    rows = np.arange(len(x))
    codes, _, _ = find_clusters(x / x.shape[1] ** 0.5, rows)
    sizes = np.bincount(codes)
    if np.sum(sizes[sizes > 1]) < 10 * SHARE * len(x) or len(sizes) < MANY_VALUES:
        return 1.0
    losses = []
    for groups in (codes, rows):
        folds = GroupKFold(10, shuffle=True, random_state=0)
        model = ExtraTreesRegressor(50, random_state=0)
        predicted = cross_val_predict(model, x, y.squeeze(), groups=groups, cv=folds)
        losses.append(((predicted.reshape(y.shape) - y) ** 2).mean(1))
    apart, together = losses
    gaps = pd.Series(apart - together).groupby(codes).sum()
    clear = gaps.sum() > DEARER * np.sqrt((gaps**2).sum())
    return float(apart.mean() / together.mean()) if clear else 1.0
