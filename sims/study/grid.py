"""Problems that differ from a base problem at dotted paths, as the blocks of a grid say. No JAX."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sims.errors import InputError, one_of
from sims.identity import digest
from sims.study.referenced_files import resolve_files
from sims.study.stacking import Scalar

if TYPE_CHECKING:
    from sims.study.specification import ProblemSpec


@dataclass(frozen=True)
class Point:
    """A problem of a sweep.

    Attributes:
        name: its place, five digits.
        coordinates: every dotted path that the sweep changes, to this point's value there, or to
            the label (else the kind) of what is no scalar; None where it has nothing.
        spec: its whole problem.
    """

    name: str
    coordinates: dict[str, Scalar]
    spec: "ProblemSpec"

    @property
    def digest(self) -> str:
        """Hash of the whole problem: two points with the same problem share it."""
        return digest(self.spec.model_dump())


@contextmanager
def point_errors(name: str, coordinates: Mapping[str, object]) -> Iterator[None]:
    """Context in which errors name the point where they happen."""
    try:
        yield
    except InputError as error:
        location = ", ".join(f"{path}: {value}" for path, value in coordinates.items())
        location = location if len(location) <= 120 else location[:117] + "..."
        field = f"point {name} ({location or 'the base problem'}): {error.field}"
        raise type(error)(field, error.value, error.allowed) from error


def changed(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a nested mapping with dotted paths set; a path may add a key, not a level."""
    copy = deepcopy(dict(base))
    for path, value in changes.items():
        *parents, last = path.split(".")
        node = copy
        for parent in parents:
            if not isinstance(node.get(parent), dict):
                raise InputError(path, parent, one_of(node, parent))
            node = node[parent]
        node[last] = value
    return copy


def combinations(blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Dotted path to value, for every point of every block."""
    for block in blocks:
        axes = []
        for path, value in block.items():
            values = value if isinstance(value, list) else [value]
            for item in values or [[]]:
                if isinstance(item, list):
                    allowed = "scalars or mappings, at least one (a list as {label: …, value: […]})"
                    raise InputError(f"grid: {path}", value, allowed)
                if isinstance(item, Mapping) and "label" not in item:
                    allowed = "a `label` in what is no scalar: it is the point's coordinate"
                    raise InputError(f"grid: {path}", item, allowed)
            axes.append([(path, v) for v in values])
        yield from (dict(choice) for choice in itertools.product(*axes))


def resolved_point(
    labelled: dict[str, Any], paths: list[str], folder: Path, anywhere: bool = True
) -> tuple[dict[str, Scalar], dict[str, Any]]:
    """Coordinates of a problem along the paths, and the problem as its schema has it.

    Args:
        labelled: the problem, as the file has it.
        paths: dotted paths that the grid changes.
        folder: of the file, where those lie that the problem names.
        anywhere: whether data that it names may lie elsewhere.
    """
    coordinates = {path: coordinate(labelled, path) for path in paths}
    return coordinates, resolve_files(_without_labels(labelled), folder, anywhere=anywhere)


def coordinate(problem: Mapping[str, Any], path: str) -> Scalar:
    """A point's value at a dotted path, or the label (else the kind) of what is no scalar there."""
    value: Any = problem
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        return str(value.get("label", value.get("kind")))
    return None if isinstance(value, list) else value


def _without_labels(value: Any) -> Any:
    """The value with every labelled list replaced by the list."""
    if isinstance(value, list):
        return [_without_labels(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    fields = {key: _without_labels(item) for key, item in value.items() if key != "label"}
    return fields["value"] if "label" in value and set(fields) == {"value"} else fields
