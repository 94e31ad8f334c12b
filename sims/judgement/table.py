"""Table of effects: all that answers are made of, with a row per problem. No JAX.

Answers are functions of this table and of the experiment's file alone, so that words, thresholds
and tolerances can change without another run.
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

NUMBERS = ("value", "error", "batches", "predicted", "valid", "size", "size_error")
"""Fields of effects that are arrays."""
HALVES = ("first half", "second half")
SKEWNESS = "second half, skewness"
"""Of questions that say always: the second half confirms what the first one has chosen."""
COMPONENT = "component: "
PRECISION = 12
"""Bits of a number that are kept: relative errors are at most 2^-12, far below Monte Carlo's."""
WORDS = {
    "number": "quantities of effects by problem",
    "effect": "name of the effect, as in experiment.yaml",
    "quantity": "field of the effect, or margin or call of a question",
    "pair": "pair of an outcome that the column is about; -1 for the problem",
    "rows": "number of problems, simulated ones first, then those that theory alone has",
}
"""Variables of the effects in a file; all but the first label the columns."""
Blocks = dict[tuple[str, str], np.ndarray]
"""Columns (N,) or (N, P) by effect and quantity."""


@dataclass(frozen=True, eq=False)
class Table:
    """Effects of an experiment by problem, and the problems' drawn parameters.

    Attributes:
        effects: effects by name.
        parameters: drawn parameters, a row per problem, the simulated ones first.
        origin: experiment, fidelity, digest of the results, seed, salt and versions.
    """

    effects: Mapping[str, Effects]
    parameters: pd.DataFrame
    origin: Mapping[str, Any] = field(default_factory=dict)

    def dataset(self, questions: "Iterable[QuestionSpec]" = ()) -> xr.Dataset:
        """The table in the form of a file.

        Numbers of effects are the matrix ``number``, with labels of its columns, to
        :data:`PRECISION` bits. Parameters are the matrix ``drawn``; text is kept as places in the
        lists of ``types``, -1 where there is none.

        Args:
            questions: questions whose margins and calls are columns, too, for other readers.
        """
        questions = list(questions)
        always = {question.effect for question in questions if question.says}
        blocks: Blocks = {}
        for name, effects in self.effects.items():
            blocks |= {(name, key): numbers for key, numbers in _quantities(effects).items()}
            if name not in always:
                blocks.pop((name, SKEWNESS), None)
        for question in questions:
            judged = self.effects[question.effect].within(conventions.tolerance(question.tolerance))
            margin = judged.margin if judged.margin.ndim == 1 else judged.margin.min(1)
            blocks[question.effect, f"margin: {question.id}"] = margin
            blocks[question.effect, f"call: {question.id}"] = judged.call
            blocks[question.effect, f"theory's call: {question.id}"] = judged.predicted_call
        data = _matrix(blocks, len(self.parameters))
        drawn = []
        types = {}
        for parameter, column in self.parameters.infer_objects().items():
            numbers, types[str(parameter)] = _coded(column)
            drawn.append(numbers.astype(float))
        shape = (len(types), len(self.parameters))
        meaning = {"long_name": "drawn parameters by problem"}
        data["drawn"] = (("parameter", "problem"), np.reshape(drawn, shape), meaning)
        data["parameter"] = ("parameter", np.array([*types], str))
        kinds = {name: (effects.kind, effects.looks) for name, effects in self.effects.items()}
        texts = {"kinds": kinds, "types": types, "origin": self.origin}
        for name, text in texts.items():
            data[name] = ((), json.dumps(text))
        return data

    @classmethod
    def of(cls, data: xr.Dataset) -> "Table":
        """The table that a file holds."""
        kinds = json.loads(str(data["kinds"].values))
        types = json.loads(str(data["types"].values))
        origin = json.loads(str(data["origin"].values))
        found: dict[str, dict[str, Any]] = {}
        labels = pd.DataFrame({word: data[word].values for word in [*WORDS][1:]})
        for (effect, quantity), part in labels.groupby(["effect", "quantity"], sort=False):
            columns = data["number"].values[part.index, : part["rows"].max()].astype(float)
            single = part["pair"].min() < 0
            found.setdefault(str(effect), {})[str(quantity)] = columns[0] if single else columns.T
        effects = {}
        for name, (kind, looks) in kinds.items():
            effects[name] = _effects(kind, looks, found[name])
        parameters = {}
        for (name, kind), numbers in zip(types.items(), data["drawn"].values, strict=True):
            parameters[name] = _decoded(numbers, kind)
        return cls(effects, pd.DataFrame(parameters), origin)


def _matrix(blocks: Blocks, count: int) -> xr.Dataset:
    """Columns as the rows of one matrix, each with its labels; NaN fills the rest of ``count``."""
    rows = []
    labels = []
    for (effect, quantity), numbers in blocks.items():
        for pair, column in enumerate(np.atleast_2d(np.transpose(numbers))):
            space = (0, count - len(column))
            rows.append(np.pad(shortened(column), space, constant_values=np.nan))
            labels.append((effect, quantity, pair if numbers.ndim > 1 else -1, len(column)))
    columns = [np.array(rows), *(np.array(label) for label in zip(*labels, strict=True))]
    data = xr.Dataset()
    for (word, meaning), values in zip(WORDS.items(), columns, strict=True):
        dims = ("column", "problem")[: values.ndim]
        data[word] = (dims, values, {"long_name": meaning})
    return data


def shortened(numbers: np.ndarray) -> np.ndarray:
    """The nearest numbers of :data:`PRECISION` bits, in float32: a file packs their zeros."""
    fraction, exponent = np.frexp(numbers.astype(float))
    short = np.ldexp(np.round(np.ldexp(fraction, PRECISION)), exponent - PRECISION)
    with np.errstate(over="ignore"):  # a margin in tiny standard errors is infinite
        return short.astype(np.float32)


def _coded(column: pd.Series) -> tuple[np.ndarray, Any]:
    """Numbers of a parameter and their type, or the places of its texts and these."""
    if column.dtype.kind == "f":
        return column.to_numpy().astype(np.float32), str(column.dtype)
    if column.dtype.kind in "biu":
        return column.to_numpy(), str(column.dtype)
    places, texts = pd.factorize(column)
    return places, [str(text) for text in texts]


def _decoded(numbers: np.ndarray, kind: Any) -> np.ndarray:
    """The parameter of :func:`_coded`."""
    if isinstance(kind, str):
        return numbers.astype(kind)
    return np.array([*kind, None], object)[numbers.astype(int)]


def _quantities(effects: Effects) -> dict[str, np.ndarray]:
    """Columns of an effect by name."""
    columns = {name: getattr(effects, name) for name in NUMBERS}
    for half, (value, error, skewness) in zip(HALVES, effects.halves or (), strict=False):
        columns |= {half: value, f"{half}, error": error, SKEWNESS: skewness}
    columns |= {f"{COMPONENT}{name}": part for name, part in effects.components.items()}
    return {name: np.asarray(column) for name, column in columns.items() if column is not None}


def _effects(kind: Any, looks: int, columns: Mapping[str, Any]) -> Effects:
    """The effects of :func:`_quantities`."""
    components = {}
    for name, column in columns.items():
        if name.startswith(COMPONENT):
            components[name.removeprefix(COMPONENT)] = column
    numbers: dict[str, Any] = {name: columns[name] for name in NUMBERS if name in columns}
    if "valid" in numbers:
        numbers["valid"] = numbers["valid"].astype(bool)
    if HALVES[0] in columns:
        first, second = (Moments(columns[half], columns[f"{half}, error"]) for half in HALVES)
        numbers["halves"] = first, second._replace(skewness=columns.get(SKEWNESS))
    return Effects(kind=kind, looks=looks, components=components, **numbers)
