"""Tables of a user: features, outputs and groups, checked row by row. No JAX."""

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from sims.advise.columns import FEWEST, choose_columns, find_absurd
from sims.advise.leakage import FEWEST_PAIRS, SHARE, find_copies
from sims.base.errors import InputError, one_of
from sims.base.files import regular_archive

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
MARKS = re.compile(r"[;|\t ]")
"""Separators of columns that are not read."""


@dataclass(frozen=True)
class Data:
    """A regression problem of rows.

    Attributes:
        features: (n, d), each of mean 0 and variance 1 unless given otherwise.
        outputs: (n, o).
        groups: (n,), integers; rows of one group are held out together.
        notes: notes on changes of the rows.
        signs: signs of leakage.
        inputs: the columns used, (n, d), as they were.
        targets: the outputs as they were, (n,) or (n, o).
    """

    features: np.ndarray
    outputs: np.ndarray
    groups: np.ndarray
    inputs: pd.DataFrame
    targets: np.ndarray
    notes: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()

    def take(self, rows: np.ndarray) -> "Data":
        """Some of the rows, by number or mask."""
        arrays = ("features", "outputs", "groups", "targets")
        taken: dict[str, Any] = {name: getattr(self, name)[rows] for name in arrays}
        return replace(self, inputs=self.inputs.iloc[rows], **taken)


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
    where = f"--data {path}"
    kinds = {".csv": _csv, ".npz": _npz}
    if path.suffix not in kinds:
        raise InputError("--data", str(path), "a .csv or .npz file")
    regular_archive(where, path)
    try:
        size = path.stat().st_size
        if not 0 < size <= LARGEST_FILE:
            raise InputError(where, f"{size:,} bytes", f"1 to {LARGEST_FILE:,} bytes")
        return kinds[path.suffix](where, path, target, groups)
    except OSError as error:
        raise InputError(where, error.strerror or str(error), "a readable file") from None


def _csv(where: str, path: Path, target: str | None, groups: str | None) -> Data:
    allowed = "a header and rows of numbers, comma-separated, with decimal points, no comments"
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            names = [name.strip() for name in next(csv.reader(file), [])]
        if target not in names:
            _check_marks(where, "".join(names[:1]), len(names) == 1, allowed)
        table = pd.read_csv(
            path, header=None, skiprows=1, index_col=False, encoding="utf-8-sig", low_memory=False
        )
    except InputError:
        raise
    except pd.errors.EmptyDataError:
        raise InputError(where, "a header and no rows", allowed) from None
    except (ValueError, csv.Error) as error:  # of the parser, and of the decoding
        raise InputError(where, " ".join(str(error).split()), allowed) from None
    while not any(names[table.shape[1] - 1 :]) and table.iloc[:, -1].isna().all():
        table = table.iloc[:, :-1]  # the rows end with a comma
    if names[table.shape[1] :] == [""]:
        names.pop()
    _check_columns(where, names, target, groups)
    if table.shape[1] != len(names):
        raise InputError(where, f"{table.shape[1]} columns for {len(names)} names", allowed)
    table.columns = pd.Index(names)
    labels = None if groups is None else table.pop(groups).to_numpy()
    for name in map(str, table):
        table[name] = _numbers(f"{where}, column {name}", table[name])
    y = table.pop(str(target)).to_numpy(float)
    return prepared(table.to_numpy(float), y, labels, [*table.columns, str(target)])


def _check_marks(where: str, first: str, alone: bool, allowed: str) -> None:
    """Raise InputError if the first line is a comment, or separates columns by other marks."""
    if first.startswith("#"):
        raise InputError(where, f"a comment in line 1: {first}", allowed)
    if alone and (mark := MARKS.search(first)):
        raise InputError(where, f"columns separated by {mark.group()!r}", allowed)


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
    for row in np.flatnonzero(text):
        word = str(column.iloc[row])
        comment = word.lstrip().startswith("#")
        allowed = "no comments" if comment else "numbers (encode categories first)"
        raise InputError(where, f"{word} in row {row + 1}", allowed)
    return numbers


def _npz(where: str, path: Path, target: str | None, groups: str | None) -> Data:
    allowed = "arrays of numbers X (n, d), y (n,) or (n, o), groups (n,)"
    for option, name in (("--target", target), ("--groups", groups)):
        if name is not None:
            raise InputError(option, name, "no option: an .npz file holds X, y and groups")
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            names = ", ".join(file.files)
            parts = {name: file[name] for name in ("X", "y", "groups") if name in file}
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
    if (count := x.shape[1]) > MOST_COLUMNS:
        allowed = f"at most {MOST_COLUMNS:,}, such as principal components of more"
        raise InputError("data, X", f"{count:,} columns", allowed)
    names = names or [f"X[:, {k}]" for k in range(x.shape[1])]
    names += [f"y[:, {k}]" for k in range(x.shape[1] + y.shape[1] - len(names))]
    table = pd.DataFrame(np.hstack([x, y]), columns=names)
    _check_values(table)
    moves = np.ptp(y, axis=0) > 0
    if not moves.all():
        raise InputError("data, y", f"constant {y[0, moves.argmin()]:g}", "outputs that vary")
    numbers = _number_groups(labels)
    kept, notes = choose_columns(table, y)
    inputs = table.iloc[:, np.flatnonzero(kept)]
    notes += find_absurd(table)
    data = _standardised(inputs, np.reshape(y, np.shape(outputs)), numbers, (*notes,))
    return leave_copies(data) if len(x) <= MOST_ROWS else data


def _standardised(
    inputs: pd.DataFrame, targets: np.ndarray, groups: np.ndarray, notes: tuple[str, ...]
) -> Data:
    outputs = scaled(targets.reshape(len(targets), -1))
    return Data(scaled(inputs.to_numpy()), outputs, groups, inputs, targets, notes)


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


def _check_values(table: pd.DataFrame) -> None:
    """Raise InputError if a number is missing or infinite, or its square would be infinite."""
    for row, column in np.argwhere(~(table.abs() <= HUGE)):
        got = f"{table.iloc[row, column]} in row {row + 1}"
        name = table.columns[column]
        raise InputError(f"data, column {name}", got, "finite numbers (fill gaps first)")


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


def leave_copies(data: Data) -> Data:
    """Rows without copies of others, see :func:`~sims.advise.leakage.find_copies`.

    Raises:
        InputError: too few rows remain.
    """
    again, notes = find_copies(data.features, data.outputs, data.groups)
    if not notes:
        return data
    if (count := (~again).sum()) < FEWEST:
        raise InputError("data", f"{count} distinct rows", f"{FEWEST} rows or more")
    # Equal rows of integers may be a chance.
    many = again.sum() >= max(FEWEST_PAIRS, SHARE * len(again))
    leak = many and (data.inputs % 1).to_numpy().any()
    kept = data.take(~again)
    groups = pd.factorize(kept.groups)[0]
    data = _standardised(kept.inputs, kept.targets, groups, (*data.notes, *notes))
    return replace(data, signs=("rows repeat others (left out)",) if leak else ())


def scaled(columns: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and variance 1; constant ones are 0."""
    centred = MaxAbsScaler().fit_transform(columns - columns.mean(0))  # squares neither vanish
    return np.asarray(StandardScaler().fit_transform(centred))


def draw_groups(
    groups: np.ndarray, rng: np.random.Generator, most: float = np.inf, replace: bool = False
) -> np.ndarray:
    """Rows of randomly drawn complete groups: as many as ``most`` rows hold, and two at least.

    Without ``most`` as many groups are drawn as there are.
    """
    codes, sizes = np.unique(groups, return_counts=True)
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(sizes)[:-1])
    while True:
        order = rng.choice(len(codes), len(codes), replace)
        count = max(np.searchsorted(np.cumsum(sizes[order]), most, side="right"), 2)
        if np.ptp(order[:count]) > 0:
            return np.concatenate([members[k] for k in order[:count]])


def draw_rows(data: Data, seed: int) -> Data:
    """Random sample of complete groups of at most :data:`MOST_ROWS` rows, without copies."""
    count = len(data.features)
    if count <= MOST_ROWS:
        return data
    rows = np.sort(draw_groups(data.groups, np.random.default_rng([seed, 3]), MOST_ROWS))
    line = f"Of {count:,} rows {len(rows):,} drawn at random are used: the advice is for so many."
    return leave_copies(replace(data.take(rows), notes=(*data.notes, line)))
