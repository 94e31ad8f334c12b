"""The YAML files that users write: every one is read here, so that a text means the same in all."""

import re
from pathlib import Path
from typing import Any, ClassVar

import yaml

from sims.errors import InputError


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Plain words as YAML 1.2's core schema has them; a key stands once in a mapping.

    ``1e-3`` is a number; ``no``, ``1:30``, ``017`` and ``2020-01-01`` are text.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge (``<<``): what is merged gives way to the mapping's own keys."""
        seen = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value} a second time", problem_mark=key.start_mark
                )
            seen.add(str(key.value))
        super().flatten_mapping(node)
        node.value = list({str(key.value): (key, value) for key, value in node.value}.values())


for _tag, _pattern in {
    "null": "~|null|Null|NULL|",
    "bool": "true|True|TRUE|false|False|FALSE",
    "int": "[-+]?(0|[1-9][0-9]*)",
    "float": r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?",
    "merge": "<<",
}.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"({_pattern})\Z"), None)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises:
        InputError: the file cannot be read, or :func:`mapping` refuses what it holds.
    """
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:  # a ValueError is a NUL in the name, or no UTF-8
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(str(path), reason, "a text file in UTF-8") from None
    return mapping(text, str(path))


def mapping(text: str, name: str) -> dict[str, Any]:
    """The mapping that a text in YAML holds.

    Raises:
        InputError: it is no YAML, holds a key twice, or is no mapping; the line has the ``name``.
    """
    try:
        data = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"a mistake at line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise InputError(name, f"{place}{problem}", "valid YAML") from None
    if not isinstance(data, dict):
        raise InputError(name, type(data).__name__, "a mapping of keys to values")
    return data
