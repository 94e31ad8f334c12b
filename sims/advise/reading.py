"""A user's tables: features, outputs and groups, checked row by row. No JAX."""

import csv
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from sims.base.errors import InputError, one_of
from sims.base.files import regular_archive

FEWEST = 20
"""Minimum number of rows."""
FEWEST_GROUPS = 5
"""Minimum number of groups, if there are any."""
MOST_ROWS = 2000
"""Maximum number of rows; larger tables are sampled."""
MOST_COLUMNS = 1000
"""Maximum number of features."""
LARGEST_FILE = 2**32
"""Maximum size of a file in bytes."""
HUGE = 1e100
"""Largest number, so that squares stay finite."""
INDEX = re.compile(
    r"|Unnamed: .*|.*[a-z](Id|ID)"
    r"|(?i:(.*[ _.-])?id|index|idx|level_0|obs|rn|#|row[ _.-]?(s|id|index|no|nr|num(ber)?|names?)?)"
)
"""Names (or no name) of columns that number the rows, if they contain at least 20 integers."""
DIGITS = 10
"""Decimals, in standard deviations, at which rows are compared."""


@dataclass(frozen=True)
class Data:
    """A regression problem of rows.

    Attributes:
        features: (n, d), each of mean 0 and variance 1 unless given otherwise.
        outputs: (n, o).
        groups: (n,), integers; rows of one group are held out together.
        notes: notes on changes of the rows.
    """

    features: np.ndarray
    outputs: np.ndarray
    groups: np.ndarray
    notes: tuple[str, ...] = ()


def read_data(path: str | Path, target: str | None = None, groups: str | None = None) -> Data:
    """Standardised rows of a file.

    Args:
        path: .csv with a header and numbers, or .npz with ``X`` (n, d), ``y`` (n,) or (n, o) and
            optionally ``groups`` (n,).
        target: column of a .csv to predict.
        groups: column of a .csv that names groups.

    Raises:
        InputError: the file cannot be read, or its rows cannot be used.
    """
    path = Path(path)
    kinds = {".csv": _csv, ".npz": _npz}
    if path.suffix not in kinds:
        raise InputError("--data", str(path), "a .csv or .npz file")
    regular_archive(f"--data {path}", path)
    try:
        if not 0 < path.stat().st_size <= LARGEST_FILE:
            got = f"{path.stat().st_size:,} bytes"
            raise InputError(f"--data {path}", got, f"1 to {LARGEST_FILE:,} bytes")
        return kinds[path.suffix](path, target, groups)
    except FileNotFoundError:
        raise InputError(f"--data {path}", "file not found") from None
    except OSError as error:
        got = error.strerror or str(error)
        raise InputError(f"--data {path}", got, "a readable file") from None


def _csv(path: Path, target: str | None, groups: str | None) -> Data:
    where = f"--data {path}"
    allowed = "a header and rows of numbers, comma-separated, with decimal points"
    try:
        names = _header(path)
        _check_columns(where, names, target, groups)
        table = pd.read_csv(
            path, header=None, skiprows=1, index_col=False, encoding="utf-8-sig", low_memory=False
        )
    except InputError:
        raise
    except (ValueError, csv.Error) as error:  # of the parser, and of the decoding
        raise InputError(where, " ".join(str(error).split()), allowed) from None
    if table.shape[1] != len(names):
        raise InputError(where, f"{table.shape[1]} columns for {len(names)} names", allowed)
    table.columns = pd.Index(names)
    labels = None if groups is None else table.pop(groups).to_numpy()
    for name in map(str, table):
        table[name] = _numbers(f"{where}, column {name}", table[name])
    y = table.pop(str(target)).to_numpy(float)
    return prepared(table.to_numpy(float), y, labels, [*table.columns, str(target)])


def _header(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [name.strip() for name in next(csv.reader(file), [])]


def _check_columns(where: str, names: list[str], target: str | None, groups: str | None) -> None:
    """Raise InputError if a column name is repeated, or a requested column is missing."""
    repeated = pd.Index(names).duplicated()
    if repeated.any():
        raise InputError(where, f"duplicate column {names[repeated.argmax()]}", "unique names")
    if target is None:
        raise InputError("--target", f"required; choose a column: {one_of(names, target)}")
    for option, name in (("--target", target), ("--groups", groups)):
        if name is not None and name not in names:
            raise InputError(option, name, f"a column: {one_of(names, name)}")
    if groups == target:
        raise InputError("--groups", groups, "a column other than --target")


def _numbers(where: str, column: pd.Series) -> pd.Series:
    """Column as numbers, with NaN for missing values.

    Raises:
        InputError: it contains words or truth values.
    """
    numbers = pd.to_numeric(column, errors="coerce")
    text = numbers.isna() & column.notna() | (column.dtype.kind == "b")
    if text.any():
        row = int(text.to_numpy().argmax())
        got = f"{column.iloc[row]!s} in row {row + 1}"
        raise InputError(where, got, "numbers (encode categories first)")
    return numbers


def _npz(path: Path, target: str | None, groups: str | None) -> Data:
    where = f"--data {path}"
    allowed = "arrays of numbers X (n, d), y (n,) or (n, o), groups (n,)"
    for option, name in (("--target", target), ("--groups", groups)):
        if name is not None:
            raise InputError(option, name, "no option: an .npz file holds X, y and groups")
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            names = ", ".join(file.files)
            parts = {}
            for name in {"X", "y", "groups"}.intersection(file.files):
                parts[name] = file[name]
    except Exception as error:  # of NumPy, zipfile, zlib and struct
        raise InputError(where, str(error) or type(error).__name__, allowed) from None
    if not {"X", "y"} <= parts.keys():
        raise InputError(where, names, allowed)
    return prepared(parts["X"], parts["y"], parts.get("groups"))


def prepared(
    features: np.ndarray,
    outputs: np.ndarray,
    groups: np.ndarray | None = None,
    names: list[str] | None = None,
) -> Data:
    """Standardised rows: every feature and output with mean 0 and variance 1.

    Columns that are constant or number the rows (:data:`INDEX`) are left out unless no feature
    would remain, and so are rows that repeat others; see :func:`find_copies`.

    Args:
        features: (n, d).
        outputs: (n,) or (n, o).
        groups: (n,), of any type.
        names: names of features and outputs.

    Raises:
        InputError: shapes disagree, a number is missing or infinite, an output is constant, no
            feature varies, or there are too few distinct rows or groups.
    """
    x = _table("X", features)
    y = _table("y", outputs)
    labels = np.arange(len(x)) if groups is None else np.asarray(groups)
    if len(x) != len(y) or labels.shape != (len(x),):
        got = f"{len(x)} rows of X, {len(y)} of y, groups {labels.shape}"
        raise InputError("data", got, "equal numbers")
    if len(x) < FEWEST:
        raise InputError("data", f"{len(x)} rows", f"{FEWEST} rows or more")
    names = names or [f"X[:, {k}]" for k in range(x.shape[1])]
    names += [f"y[:, {k}]" for k in range(x.shape[1] + y.shape[1] - len(names))]
    _check_values(np.hstack([x, y]), names)
    moves = np.ptp(y, axis=0) > 0
    if not moves.all():
        raise InputError("data, y", f"constant {y[0, moves.argmin()]:g}", "outputs that vary")
    kept, notes = choose_columns(x, names)
    again, note = find_copies(scaled(x[:, kept]), scaled(y))
    x = x[~again][:, kept]
    if len(x) < FEWEST:
        raise InputError("data", f"{len(x)} distinct rows", f"{FEWEST} rows or more")
    return Data(scaled(x), scaled(y[~again]), _number_groups(labels[~again]), (*notes, *note))


def _table(name: str, values: np.ndarray) -> np.ndarray:
    """Values as numbers (n, d).

    Raises:
        InputError: they are not numbers of this shape.
    """
    array = np.asarray(values)
    array = array[:, None] if array.ndim == 1 and name == "y" else array
    if array.ndim != 2 or array.dtype.kind not in "iuf" or not array.shape[1]:
        got = f"{array.dtype} of shape {array.shape}"
        raise InputError(f"data, {name}", got, "numbers (n, d), d at least 1")
    return array.astype(float)


def _check_values(table: np.ndarray, names: list[str]) -> None:
    """Raise InputError if a number is missing or infinite, or its square would be infinite."""
    bad = ~(np.abs(table) <= HUGE)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        got = f"{table[row, column]} in row {row + 1}"
        raise InputError(f"data, column {names[column]}", got, "finite numbers (fill gaps first)")


def choose_columns(x: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Mask (d,) of columns that vary and do not number the rows, and notes on the others.

    The last varying column is always kept.

    Raises:
        InputError: no column varies.
    """
    kept = np.ptp(x, axis=0) > 0
    if not kept.any():
        raise InputError("data, X", "only constant columns", "a varying feature")
    notes = []
    if gone := int((~kept).sum()):
        notes.append(f"Left out {gone} constant column{'s' * (gone > 1)}.")
    for column in np.flatnonzero(kept):
        name = names[column]
        values = np.unique(x[:, column])
        if len(values) < FEWEST or (values % 1).any() or kept.sum() == 1:
            continue
        if INDEX.fullmatch(name):
            kept[column] = False
            notes.append(f"Left out the column {name or 'without a name'}, which numbers the rows.")
        elif np.ptp(values) < len(values) >= len(x) / 2:
            notes.append(f"The column {name} counts the rows; drop it unless it is measured.")
    return kept, notes


def _number_groups(labels: np.ndarray) -> np.ndarray:
    """Groups as integers from 0.

    Raises:
        InputError: a row has no group, or there are too few groups.
    """
    codes = pd.factorize(labels)[0]
    if codes.min() < 0:
        raise InputError("data, groups", "a missing group", "a group for every row")
    if (count := codes.max() + 1) < FEWEST_GROUPS:
        raise InputError("data, groups", f"{count} groups", f"{FEWEST_GROUPS} groups or more")
    return codes


def find_copies(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Mask (n,) of copies of earlier rows, and a note if rows are equal in all columns.

    Equal rows are copies if equal outputs always come with equal features (20 outputs or more). If
    features take many values (one takes 20, or all combinations are more than the rows), they are
    if equal features always come with equal outputs, and if all rows are repeated as often.
    Otherwise, as in a truth table, they are counts.
    """
    inputs = pd.DataFrame(x.round(DIGITS) + 0.0)
    outputs = pd.DataFrame(y.round(DIGITS) + 0.0)
    table = pd.concat([inputs, outputs], axis=1)
    count = table.duplicated().sum()
    if not count:
        return np.zeros(len(x), bool), []
    codes = np.unique(table, axis=0, return_inverse=True)[1].ravel()
    sizes = np.bincount(codes)
    levels = inputs.nunique().tolist()
    kept = sizes  # of every kind
    if outputs.duplicated().sum() == count <= len(x) - FEWEST:
        kept = sizes // sizes
    elif max(levels) >= FEWEST or math.prod(levels) > len(x):
        alike = inputs.duplicated().sum() == count
        kept = sizes // (sizes if alike else np.gcd.reduce(sizes))
    again = pd.Series(codes).groupby(codes).cumcount().to_numpy() >= kept[codes]
    note = f"{count:,} of {len(x):,} rows repeat others exactly; {again.sum():,} are left out."
    return again, [note]


def scaled(columns: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and variance 1."""
    centred = columns - columns.mean(0)
    centred /= np.abs(centred).max(0)
    return np.asarray(centred / centred.std(0))


def draw_rows(data: Data, seed: int) -> Data:
    """Random sample of at most :data:`MOST_ROWS` rows."""
    count = len(data.features)
    if count <= MOST_ROWS:
        return data
    rows = np.random.default_rng([seed, 3]).choice(count, MOST_ROWS, replace=False)
    line = f"Of {count:,} rows {MOST_ROWS:,} drawn at random are used: the advice is for so many."
    return Data(data.features[rows], data.outputs[rows], data.groups[rows], (*data.notes, line))


def reduce_columns(data: Data) -> Data:
    """The first :data:`MOST_COLUMNS` principal components of more features, of mean square 1."""
    from sklearn.decomposition import PCA

    rows, columns = data.features.shape
    if columns <= MOST_COLUMNS:
        return data
    components = PCA(min(rows - 1, MOST_COLUMNS), random_state=0)
    features = components.fit_transform(data.features)
    features /= (features**2).mean() ** 0.5
    share = components.explained_variance_ratio_.sum()
    line = f"The features are principal components, with {share:.0%} of all columns' variance."
    return replace(data, features=features, notes=(*data.notes, line))
