"""Validation of what users write: strict models, and errors of one line."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sims.errors import InputError, one_of

Model = TypeVar("Model", bound=BaseModel)


class Strict(BaseModel):
    """A model that refuses unknown keys and what is not finite, and leaves types as they are."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def parse(model: type[Model], data: object, where: str, of_json: bool = False) -> Model:
    """Validate data against a model.

    Args:
        model: what the data should be.
        data: as read from a file.
        where: the file, for the error line.
        of_json: whether the file was JSON, whose lists may stand for tuples, and mappings for
            dataclasses.

    Raises:
        InputError: one line with the field's path, its value and what is allowed.
    """
    try:
        if of_json:
            return model.model_validate_json(json.dumps(data))
        return model.model_validate(data)
    except ValidationError as error:
        errors = error.errors()
        # A key that is misspelt is missing too: the line is to show it as it was written.
        ranks = {"extra_forbidden": 0, "value_error": 1}
        worst = min(errors, key=lambda e: ranks.get(e["type"], 2))
        raise _line(model, data, worst, where) from None


def _line(model: type[Model], data: object, first: Mapping[str, Any], where: str) -> InputError:
    """The error of one line for an error of pydantic's."""
    kind, location, given = first["type"], first["loc"], first["input"]
    context = first.get("ctx", {})
    field = ": ".join(filter(None, (where, _path(data, location, kind == "missing"))))
    if kind == "value_error" and isinstance(context["error"], InputError):
        inner = context["error"]
        return InputError(f"{field}: {inner.field}", inner.value, inner.allowed)
    if kind == "extra_forbidden":
        return InputError(field, location[-1], _known_keys(model, location))
    if kind == "missing":
        return InputError(field, "nothing", "a value (it is required)")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        names = re.findall(r"'(\w+)'", context.get("expected_tags", ""))
        if kind == "union_tag_invalid":
            return InputError(f"{field}.kind", context["tag"], one_of(names, context["tag"]))
        return InputError(f"{field}.kind", "nothing", "a value (it is required)")
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return InputError(field, given, "a mapping of keys to values")
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", context["expected"])
        return InputError(field, given, one_of(names, given))
    allowed = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return InputError(field, given, allowed[0].lower() + allowed[1:])


def _path(data: Any, location: tuple[Any, ...], missing: bool) -> str:
    """The dotted path of an error, without the names of union members that pydantic puts in."""
    parts = []
    for part in location[: -1 if missing else None]:
        inside = isinstance(data, dict) and part in data
        if inside or (isinstance(data, list) and isinstance(part, int)):
            data = data[part]
            parts.append(part)
    return ".".join(map(str, (*parts, *(location[-1:] if missing else ()))))


def _known_keys(model: type[BaseModel], location: tuple[Any, ...]) -> str:
    """The keys allowed where an unknown one stood, for the error line."""
    schema = model.model_json_schema()
    nodes = list(_options(schema, schema))
    for part in location[:-1]:
        inner = [found for node in nodes if (found := _inside(node, part)) is not None]
        nodes = [option for node in inner or nodes for option in _options(schema, node)]
    keys = {key for node in nodes for key in node.get("properties", {})}
    return one_of(sorted(keys), location[-1]) or "no such key (see `sims schema`)"


def _inside(node: dict[str, Any], part: str | int) -> dict[str, Any] | None:
    """What a schema has at a key, at a place in a list, or for the union's member of that name."""
    if isinstance(part, int):
        return node.get("items")
    properties = node.get("properties", {})
    if properties.get("kind", {}).get("const") == part or node.get("title") == part:
        return node
    every = node.get("additionalProperties")
    return properties.get(part) or (every if isinstance(every, dict) else None)


def _options(schema: dict[str, Any], node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema's node, or the alternatives that it stands for, without references."""
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    alternatives = node.get("oneOf") or node.get("anyOf")
    for option in alternatives or ():
        yield from _options(schema, option)
    if not alternatives:
        yield node
