"""Files that users write or hand over, YAML and JSON: read whole, and distrusted.

Every YAML file of the project goes through :func:`read_yaml`, so that a text means the same in all
of them. Nothing here needs more than the standard library and PyYAML.
"""

import math
import re
import stat
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from sims.errors import InputError

LARGEST = 4 * 2**20
"""Bytes of a YAML file, at most: a hundred times the longest experiment."""
DEEPEST = 32
"""Levels of mappings and lists in a YAML file, at most."""
MOST_VALUES = 10**6
"""Values in a YAML file, at most; what an alias repeats counts every time."""
PLAIN = "a finite decimal number, true, false, null, or text in quotes"

Path_ = tuple[str | int, ...]
"""Keys and places in lists, from the top of a file."""

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LIKE_A_NUMBER = re.compile(r"[-+]?0[0-9]+([.eE].*)?|[-+]?0o[0-7]+")
"""A leading zero, or YAML 1.2's octal: other readers differ about their value."""
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_OLD = yaml.resolver.Resolver()
"""YAML 1.1's reading of plain scalars."""


def read_text(path: str | Path, largest: int = LARGEST) -> str:
    """The text of a regular file of at most so many bytes, in UTF-8.

    Raises:
        InputError: there is no such file, it is a folder, pipe or device, too long, or no UTF-8.
    """
    allowed = f"a text file in UTF-8 of at most {largest / 2**20:g} MiB"
    try:
        state = Path(path).stat()
        regular = stat.S_ISREG(state.st_mode)
        data = Path(path).read_bytes() if regular and state.st_size <= largest else None
    except (OSError, ValueError) as error:  # a ValueError is a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(str(path), reason, allowed) from None
    if data is None:
        kind = "a folder" if stat.S_ISDIR(state.st_mode) else "a pipe or device"
        raise InputError(str(path), f"{state.st_size:,} bytes" if regular else kind, allowed)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(str(path), f"no UTF-8 at byte {error.start}", allowed) from None


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping that a YAML file holds, as YAML 1.2's core schema has it.

    Numbers are decimal and finite. What other readers take for a number, a truth value or a date
    (``017``, ``0x1F``, ``1_000``, ``1:30``, ``yes``, ``2020-01-01``, ``.inf``) is refused unless it
    stands in quotes, so are tags, and a key that stands twice. Aliases and merges (``<<``) are
    copies.

    Raises:
        InputError: the file cannot be read, is no YAML, or holds anything of the above.
    """
    return mapping(read_text(path), str(path))


def mapping(text: str, name: str) -> dict[str, Any]:
    """The mapping that a text in YAML holds; :func:`read_yaml` says which.

    Raises:
        InputError: it is no YAML, or holds what is not allowed; the line has the ``name``.
    """
    try:
        data = _Document(name, text).read()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        before = text[: getattr(error, "position", 0)].count("\n")
        place = f"a mistake at line {mark.line + 1 if mark else before + 1}"
        problem = getattr(error, "problem", None) or getattr(error, "reason", "")
        raise InputError(name, f"{place}: {problem}", "valid YAML") from None
    if not isinstance(data, dict):
        raise InputError(name, type(data).__name__, "a mapping of keys to values")
    return data


class _Document:
    """One YAML document, made of the parser's events: no recursion deeper than :data:`DEEPEST`."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.events: Iterator[yaml.Event] = iter(yaml.parse(text, _Parser))
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.values = 0

    def read(self) -> Any:
        data = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                if self.values:
                    raise self.error(event, (), "a second document", "one document")
                data = self.value(next(self.events), ())
        return data

    def error(self, at: yaml.Event, path: Path_, value: object, allowed: str) -> InputError:
        place = ": ".join([self.name, *([".".join(map(str, path))] if path else [])])
        line = at.start_mark.line + 1 if at.start_mark else 0
        return InputError(f"{place} (line {line})", value, allowed)

    def value(self, event: yaml.Event, path: Path_) -> Any:
        """The value that begins with this event, whose place in the file is the path."""
        before = self.values
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                allowed = "an alias of an anchor above, outside of what it names"
                raise self.error(event, path, f"*{event.anchor}", allowed)
            value, size = self.anchors[event.anchor]
            self.count(size, event, path)
            return deepcopy(value)
        self.count(1, event, path)
        if len(path) > DEEPEST:
            raise self.error(event, path[:4], f"{len(path)} levels", f"at most {DEEPEST}")
        tag, anchor = getattr(event, "tag", None), getattr(event, "anchor", None)
        if tag is not None:
            raise self.error(event, path, f"the tag {tag}", "values without tags")
        if isinstance(event, yaml.ScalarEvent):
            value = self.scalar(event, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = []
            while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
                value.append(self.value(item, (*path, len(value))))
        else:
            value = self.mapping(path)
        if anchor is not None:
            self.anchors[anchor] = value, self.values - before
        return value

    def count(self, values: int, at: yaml.Event, path: Path_) -> None:
        self.values += values
        if self.values > MOST_VALUES:
            allowed = f"at most {MOST_VALUES:,} values, copies by aliases counted"
            raise self.error(at, path, "more", allowed)

    def mapping(self, path: Path_) -> dict[str | int, Any]:
        own: dict[str | int, Any] = {}
        merged: dict[str | int, Any] = {}
        seen = set()
        while not isinstance(at := next(self.events), yaml.MappingEndEvent):
            if not isinstance(at, yaml.ScalarEvent):
                raise self.error(at, path, "a key that is no scalar", "text as a key")
            merges = at.value == "<<" and at.implicit[0]
            key = "<<" if merges else self.value(at, path)
            inside = (*path, key)
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise self.error(at, path, f"the key {at.value}", "text or a whole number as a key")
            if key in seen:
                raise self.error(at, inside, "the key a second time", "each key once")
            seen.add(key)
            value = self.value(next(self.events), inside)
            if not merges:
                own[key] = value
                continue
            for part in reversed(value if isinstance(value, list) else [value]):
                if not isinstance(part, dict):
                    raise self.error(at, inside, part, "mappings to merge")
                merged |= part
        return merged | own

    def scalar(self, event: yaml.ScalarEvent, path: Path_) -> str | float | int | bool | None:
        text = event.value
        if not event.implicit[0]:  # in quotes, or a block of text
            return str(text)
        if text in _WORDS:
            return _WORDS[text]
        if _FLOAT.fullmatch(text):
            number = float(text)
            vanished = number == 0 and re.match(r"[-+.0]*[1-9]", text)
            if math.isfinite(number) and not vanished:
                return int(text) if _INTEGER.fullmatch(text) else number
        elif not _LIKE_A_NUMBER.fullmatch(text):
            old = _OLD.resolve(yaml.ScalarNode, text, (True, False))
            if old in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:value"):
                return str(text)
        raise self.error(event, path, text, PLAIN)
