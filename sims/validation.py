"""Validation of what users write: strict models, and errors of one line."""

import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from sims.errors import InputError

Model = TypeVar("Model", bound=BaseModel)


class Strict(BaseModel):
    """A model that refuses unknown keys and does not change types behind the user's back."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def parse(model: type[Model], data: object, where: str) -> Model:
    """Validate data against a model.

    Raises:
        InputError: one line with the field's path, its value and what is allowed.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ": ".join(filter(None, (where, _path(data, first["loc"]))))
        if first["type"] == "extra_forbidden":
            raise InputError(field, first["loc"][-1], _known_keys(model, first["loc"])) from None
        if first["type"] == "missing":
            raise InputError(field, "nothing", "a value (it is required)") from None
        if first["type"] == "union_tag_invalid":
            context = first["ctx"]
            raise InputError(f"{field}.kind", context["tag"], context["expected_tags"]) from None
        if first["type"] == "union_tag_not_found":
            raise InputError(f"{field}.kind", "nothing", "a value (it is required)") from None
        if first["type"] in ("model_type", "model_attributes_type", "dict_type"):
            raise InputError(field, first["input"], "a mapping of keys to values") from None
        allowed = first["msg"].removeprefix("Input should be ")
        raise InputError(field, first["input"], allowed[0].lower() + allowed[1:]) from None


def _path(data: Any, location: tuple[Any, ...]) -> str:
    """The dotted path of an error, without the names of union members that pydantic puts in."""
    parts = []
    for part in location[:-1]:
        inside = isinstance(data, dict) and part in data
        if inside or (isinstance(data, list) and isinstance(part, int)):
            data = data[part]
            parts.append(part)
    last = location[-1:]
    if isinstance(data, dict | list):
        parts.extend(last)
    return ".".join(map(str, parts))


class _Loader(yaml.SafeLoader):
    """YAML 1.2's numbers: PyYAML follows 1.1, where ``1e-3`` and ``1.5e3`` are text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A YAML mapping from a file, or InputError in one line."""
    try:
        data = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise InputError(
            str(path), error.strerror or "unreadable", "a readable YAML file"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else "its text"
        raise InputError(str(path), f"a mistake at {place}", "valid YAML in UTF-8") from None
    if not isinstance(data, dict):
        raise InputError(str(path), type(data).__name__, "a mapping of keys to values")
    return data


def _known_keys(model: type[BaseModel], location: tuple[Any, ...]) -> str:
    """The keys allowed where an unknown one stood, for the error line."""
    schema = model.model_json_schema()
    node: Any = schema
    for part in location[:-1]:
        node = _resolve(schema, node)
        options = node.get("oneOf") or node.get("anyOf") or []
        for option in (_resolve(schema, o) for o in options):
            mapping = option.get("discriminator", {}).get("mapping", {})
            if part in mapping:
                option = {"$ref": mapping[part]}
            if (
                option.get("properties", {}).get("kind", {}).get("const") == part
                or "$ref" in option
            ):
                node = option
                break
            if part in option.get("properties", {}):
                node = option["properties"][part]
                break
        else:
            node = node.get("properties", {}).get(part, node)
    keys = _resolve(schema, node).get("properties", {})
    return ", ".join(sorted(keys)) if keys else "no such key (see `sims schema`)"


def _resolve(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    return node
