"""YAML files of users, all read here, so that a text has one meaning in all files."""

import re
from pathlib import Path
from typing import Any, ClassVar

import yaml

from sims.base.errors import InputError
from sims.base.files import regular_file

LARGEST_FILE = 2**26
"""Maximum size of a file in bytes."""
MOST_VALUES, MOST_LEVELS, MOST_DIGITS = 10**6, 32, 40
"""Largest size of a text; an alias counts as ten times the text that it repeats."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML loader with the core schema of YAML 1.2 and unique keys.

    ``1e-3`` is a number; ``no``, ``1:30``, ``017`` and ``2020-01-01`` are text.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Apply a merge (``<<``), in which the mapping's keys have priority."""
        seen = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                raise _mistake(f"the key {key.value} a second time", key.start_mark)
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
    """Mapping in a YAML file.

    Raises:
        InputError: the file cannot be read, or :func:`mapping` refuses its content.
    """
    allowed = "a text file in UTF-8"
    try:
        text = regular_file(str(path), path, allowed, LARGEST_FILE).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(str(path), error.reason, allowed) from None
    return mapping(text, str(path))


def mapping(text: str, name: str) -> dict[str, Any]:
    """Mapping in a YAML text.

    Raises:
        InputError: the text is not YAML or not a mapping, has a repeated key, a tag or a recursive
            alias, or exceeds the limits; the line has the ``name``.
    """
    try:
        _check_extent(text)
        data = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark and "\n" in text else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        if type(error) is yaml.MarkedYAMLError:  # one of ours
            limits = f"unique keys, no tags, up to {MOST_VALUES:,} values in {MOST_LEVELS} levels"
            raise InputError(name, f"{place}{problem}; allowed: {limits}") from None
        # The parser's "did not find expected key" is "expected a key" here.
        words = re.sub("^did not find expected (?=[a-z])", "expected a ", str(problem))
        words = words.replace("did not find expected", "expected")
        raise InputError(name, f"{place}not valid YAML ({words})") from None
    if not isinstance(data, dict):
        raise InputError(name, type(data).__name__, "a mapping of keys to values")
    return data


def _check_extent(text: str) -> None:
    """Check the size of a text before it is built, which may not end if aliases nest.

    Raises:
        yaml.YAMLError: it is no YAML, or holds what :func:`mapping` refuses.
    """
    values: dict[str | None, int] = {}  # in what has ended, by its anchor
    anchors: list[str | None] = []  # of what is open
    counts = [0]
    for event in yaml.parse(text, _Loader):
        mark = event.start_mark
        anchor = getattr(event, "anchor", None)
        count = 1
        if len(counts) > MOST_LEVELS or counts[-1] > MOST_VALUES:
            raise _mistake("too many values or levels, aliases written out", mark)
        if re.fullmatch(f"[-+]?[0-9]{{{MOST_DIGITS},}}", getattr(event, "value", "")):
            raise _mistake(f"a whole number of {MOST_DIGITS} digits or more", mark)
        if tag := getattr(event, "tag", None):
            raise _mistake(f"could not determine a constructor for {tag}", mark)
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(anchor)
            counts.append(0)
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor = anchors.pop()
            count = counts.pop() + 1
        elif isinstance(event, yaml.AliasEvent):
            if anchor not in values:
                raise _mistake("found undefined alias, or one of what is around it", mark)
            counts[-1] += 10 * values[anchor]  # so that few nest in one another
            continue
        values[anchor] = count
        counts[-1] += count


def _mistake(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
