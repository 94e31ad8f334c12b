"""Validation of users' input: strict models, and one-line errors."""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from sims.base.errors import InputError, one_of

Model = TypeVar("Model", bound=BaseModel)


class Strict(BaseModel):
    """A model that refuses unknown keys and infinite numbers, and does not convert types.

    The text below a field describes it in the JSON schema.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_key(cls, data: object) -> object:
        """The data, after a check for unknown keys; the error names the known ones."""
        if isinstance(data, Mapping) and cls.model_config["extra"] == "forbid":
            for key in data:
                if key not in cls.model_fields:
                    raise InputError(str(key), key, one_of(sorted(cls.model_fields), key))
        return data


def parse(
    model: type[Model],
    data: object,
    location: str,
    of_json: bool = False,
    context: dict[str, Any] | None = None,
) -> Model:
    """Data validated against a model.

    Args:
        model: model of the data.
        data: content of a file.
        location: the file, for the error line.
        of_json: whether the file was JSON, in which lists can represent tuples, and mappings
            dataclasses.
        context: context for validators that need more than the data.

    Raises:
        InputError: one line with the field's path, its value and what is allowed.
    """
    try:
        if of_json:
            return model.model_validate_json(json.dumps(data))
        return model.model_validate(data, context=context)
    except ValidationError as error:
        # A key that is misspelt is missing too: the line is to show it as it was written.
        worst = min(error.errors(), key=lambda item: item["type"] != "value_error")
        raise _line(data, worst, location) from None


def _line(data: object, error: Mapping[str, Any], location: str) -> InputError:
    """One-line error for an error of pydantic."""
    value = error["input"]
    context = error.get("ctx", {})
    words = error["msg"]
    path = _path(data, error["loc"], error["type"] == "missing")
    inside = ""
    cause = context.get("error")
    if isinstance(cause, InputError):
        value = cause.value
        words = cause.allowed
        if cause.field.isidentifier():
            path.append(cause.field)
        else:
            inside = cause.field
    elif error["type"].startswith("union_tag"):
        path.append("kind")
        names = re.findall(r"'(\w+)'", context.get("expected_tags", ""))
        value = context.get("tag", "nothing")
        words = one_of(names, value) if names else "a value (it is required)"
    elif error["type"] == "missing":
        value = "nothing"
        words = "a value (it is required)"
    elif error["type"] == "model_attributes_type":  # of a choice by its kind
        words = "a mapping {kind: NAME, …}"
    elif error["type"] in ("model_type", "dict_type"):
        words = "a mapping of keys to values"
    elif error["type"] == "literal_error":
        words = one_of(re.findall(r"'([^']*)'", context["expected"]), value)
    else:
        words = words.removeprefix("Input should be ").removeprefix("Value error, ")
        words = words[0].lower() + words[1:]
    return InputError(": ".join(filter(None, (location, ".".join(path), inside))), value, words)


def _path(data: Any, location: tuple[Any, ...], missing: bool) -> list[str]:
    """Path of an error, without the names of union members that pydantic inserts."""
    path = []
    for part in location[: -1 if missing else None]:
        inside = isinstance(data, dict) and part in data
        if inside or (isinstance(data, list) and isinstance(part, int)):
            data = data[part]
            path.append(str(part))
    return [*path, str(location[-1])] if missing else path
