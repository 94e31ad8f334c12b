"""Table of effects: all that answers are made of, with a row per problem. No JAX.

Answers are functions of this table and of the experiment's file alone, so that words, thresholds,
strata and restrictions can change without another run.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.judgement import conventions
from sims.judgement.effects import Effects, Moments

if TYPE_CHECKING:
    from sims.study.schema import QuestionSpec

PARAMETER = "parameter: "
"""Prefix of the variables that hold drawn parameters."""
COMPONENT = "component: "
HALVES = ("first half", "second half")
NUMBERS = ("value", "error", "batches", "predicted", "valid", "size", "size_error")
"""Fields of effects that are arrays."""
LARGE = 4096
"""Bytes above which a variable is compressed."""
COLUMN = ("effect", "quantity", "pair", "rows")
"""Labels of a column: the last one is the number of problems that it has, simulated ones first."""
WORDS = {
    "number": "quantities of effects by problem",
    "effect": "name of the effect, as in experiment.yaml",
    "quantity": "what the column is: a field of the effects, a margin or a call of a question",
    "pair": "pair of an outcome that the column is about; -1 for the problem",
    "rows": "number of problems, simulated ones first, then those that theory alone has",
}


@dataclass(frozen=True, eq=False)
class Table:
    """Effects of an experiment by problem, and the problems' drawn parameters.

    Attributes:
        effects: effects by name.
        parameters: drawn parameters, a row per problem, the simulated ones first.
        origin: experiment, fidelity, digest of the results, seed, salt and versions.
        files: number of a problem that fails, as text, to its description.
    """

    effects: Mapping[str, Effects]
    parameters: pd.DataFrame
    origin: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)

    def dataset(self, questions: "Iterable[QuestionSpec]" = ()) -> xr.Dataset:
        """The table in the form of a file.

        ``number`` has a row per problem and a column per quantity, with its labels; each parameter
        is a variable. Text is kept as places in ``values``, −1 where there is none.

        Args:
            questions: questions whose margins and calls are columns, too, for other readers.
        """
        blocks: dict[tuple[str, str], np.ndarray] = {}
        for name, effects in self.effects.items():
            for quantity, numbers in _quantities(effects).items():
                blocks[name, quantity] = numbers
        for question in questions:
            judged = self.effects[question.effect].within(
                conventions.tolerance(question.tolerance)
            )
            margin = judged.margin if judged.margin.ndim == 1 else judged.margin.min(1)
            blocks[question.effect, f"margin: {question.id}"] = margin.astype(np.float32)
            blocks[question.effect, f"call: {question.id}"] = judged.call
            blocks[question.effect, f"theory's call: {question.id}"] = judged.predicted_call
        data = _matrix(blocks, len(self.parameters))
        for place, parameter in enumerate(self.parameters):
            data[f"{PARAMETER}{place}"] = _written(self.parameters[parameter])
        kinds = {name: (effects.kind, effects.looks) for name, effects in self.effects.items()}
        texts = {"kinds": kinds, "origin": dict(self.origin), "files": dict(self.files)}
        for name, text in texts.items():
            data[name] = ((), json.dumps(text))
        for variable in data.variables.values():
            if variable.dtype.kind == "U":
                variable.encoding["dtype"] = "S1"
            variable.encoding |= {
                "zlib": variable.nbytes > LARGE,
                "shuffle": variable.nbytes > LARGE,
            }
        return data

    @classmethod
    def of(cls, data: xr.Dataset) -> "Table":
        """The table that a file holds."""
        kinds, origin, files = (
            json.loads(str(data[k].values)) for k in ("kinds", "origin", "files")
        )
        numbers: dict[tuple[str, str], list[np.ndarray]] = {}
        flat = set()
        labels = (data[label].values for label in COLUMN)
        for row, name, quantity, pair, count in zip(data["number"].values, *labels, strict=True):
            numbers.setdefault((name, quantity), []).append(row[:count])
            if pair < 0:
                flat.add((name, quantity))
        found: dict[str, dict[str, np.ndarray]] = {name: {} for name in kinds}
        for (name, quantity), rows in numbers.items():
            one = (name, quantity) in flat
            found[name][quantity] = rows[0] if one else np.stack(rows, axis=1)
        effects = {}
        for name, (kind, looks) in kinds.items():
            effects[name] = _effects(kind, looks, found[name])
        columns = [_read(column) for name, column in data.items() if PARAMETER in str(name)]
        return cls(effects, pd.DataFrame(dict(columns)), origin, files)


def _matrix(blocks: Mapping[tuple[str, str], np.ndarray], count: int) -> xr.Dataset:
    """Columns (N,) or (N, P) of each effect and quantity as one matrix of ``count`` rows."""
    rows = []
    labels = []
    for (name, quantity), numbers in blocks.items():
        for pair, column in enumerate(np.atleast_2d(np.transpose(numbers))):
            space = (0, count - len(column))
            rows.append(np.pad(column.astype(float), space, constant_values=np.nan))
            labels.append((name, quantity, pair if numbers.ndim > 1 else -1, len(column)))
    data = xr.Dataset({"number": (("column", "problem"), np.array(rows))})
    for label, values in zip(COLUMN, zip(*labels, strict=True), strict=True):
        data.coords[label] = ("column", np.array(values))
    for word, meaning in WORDS.items():
        data[word].attrs["long_name"] = meaning
    return data


def _quantities(effects: Effects) -> dict[str, np.ndarray]:
    """Columns of an effect by name: of problems (N,), or (M,) by theory; of pairs (N, P)."""
    columns = {name: getattr(effects, name) for name in NUMBERS}
    for half, moments in zip(HALVES, effects.halves or (), strict=False):
        value, error, skewness = moments
        columns |= {half: value, f"{half}, error": error}
        columns[f"{half}, skewness"] = np.float32(skewness)
    columns |= {f"{COMPONENT}{name}": part for name, part in effects.components.items()}
    return {name: np.asarray(column) for name, column in columns.items() if column is not None}


def _effects(kind: Any, looks: int, columns: Mapping[str, np.ndarray]) -> Effects:
    """The effects of :func:`_quantities`."""
    numbers: dict[str, Any] = {name: columns[name] for name in NUMBERS if name in columns}
    if "valid" in numbers:
        numbers["valid"] = numbers["valid"].astype(bool)
    if HALVES[0] in columns:
        parts = ("", ", error", ", skewness")
        halves = [Moments(*(columns[half + part] for part in parts)) for half in HALVES]
        numbers["halves"] = tuple(halves)
    components = {}
    for name, column in columns.items():
        if name.startswith(COMPONENT):
            components[name.removeprefix(COMPONENT)] = column
    return Effects(kind=kind, looks=looks, components=components, **numbers)


def _written(column: pd.Series) -> xr.DataArray:
    """A parameter's values, or the places of its texts."""
    words = {"long_name": str(column.name)}
    column = column.infer_objects()
    if column.dtype.kind in "biuf":
        return xr.DataArray(column.to_numpy(), dims="problem", attrs=words)
    places, values = pd.factorize(column)
    words["values"] = json.dumps([str(value) for value in values])
    return xr.DataArray(places, dims="problem", attrs=words)


def _read(column: xr.DataArray) -> tuple[str, np.ndarray]:
    """Name and values of a parameter."""
    values = column.values
    if "values" in column.attrs:
        texts = np.array([*json.loads(column.attrs["values"]), None], object)
        values = texts[values]
    return column.attrs["long_name"], values
