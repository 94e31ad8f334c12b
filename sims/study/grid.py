"""Problems that differ from a base problem at dotted paths. No JAX."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from sims.base.errors import InputError, located, one_of
from sims.study.stacking import Scalar

if TYPE_CHECKING:
    from sims.study.specification import ProblemSpec


@dataclass(frozen=True)
class Point:
    """A problem of a sweep.

    Attributes:
        name: its index, five digits.
        coordinates: every dotted path that the sweep changes, to this point's value there, or to
            the label (else the kind) of a value that is not a scalar; None if it is missing.
        spec: its complete problem.
    """

    name: str
    coordinates: dict[str, Scalar]
    spec: "ProblemSpec"


@contextmanager
def point_errors(name: str, coordinates: Mapping[str, object]) -> Iterator[None]:
    """Context in which errors name the point where they happen, unless they do so already."""
    place = ", ".join(f"{path}: {value}" for path, value in coordinates.items())
    place = f" ({shorten(place, 120, placeholder='...')})" if place else ""
    with located(f"point {name}{place}", unless="point "):
        yield


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


def label(value: Any) -> Any:
    """The value, or of a mapping its label, else its kind."""
    return str(value.get("label", value.get("kind"))) if isinstance(value, Mapping) else value


def coordinate(problem: Mapping[str, Any], path: str) -> Scalar:
    """Value of a point at a dotted path, or the label (else the kind) of a non-scalar value."""
    value: Any = problem
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return None if isinstance(value, list) else label(value)


def unlabelled(value: Any) -> Any:
    """The value without its label: {label: two, value: [1, 2]} is the list."""
    if not isinstance(value, Mapping) or "label" not in value:
        return value
    fields = {key: item for key, item in value.items() if key != "label"}
    return fields["value"] if set(fields) == {"value"} else fields
