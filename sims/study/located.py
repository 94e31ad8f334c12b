"""Files that a problem names: where they are, and what they hold. No JAX.

A part of a problem with ``kind: python`` or ``kind: empirical`` names a file, by its place relative
to the YAML file. Before anything else is done with such a problem its paths are made those of this
process, and the digest of what the files hold goes into the problem: results, checkpoints and
fingerprints then belong to the content, and an edited file is another problem.
"""

import ast
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sims.errors import InputError

PYTHON, DATA = "python", "empirical"
"""Kinds whose ``file`` is Python, or a table."""


def located(value: Any, folder: Path, where: str = "problem") -> Any:
    """A problem, or a part of one, with the files that it names found and their content known.

    Args:
        value: as the YAML file has it.
        folder: of that file.
        where: of the value, for the error line.

    Returns:
        A copy in which ``file`` is relative to the working directory where it is inside, and
        ``content`` beside it the digest of the file.

    Raises:
        InputError: there is no such file.
    """
    if isinstance(value, list):
        return [located(item, folder, f"{where}.{i}") for i, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    inside = {key: located(item, folder, f"{where}.{key}") for key, item in value.items()}
    name = value.get("file")
    if value.get("kind") not in (PYTHON, DATA) or not isinstance(name, str):
        return inside
    path = Path(os.path.normpath((folder / name).absolute()))
    try:
        found = digest_of(path, value["kind"] == PYTHON)
    except (OSError, ValueError) as error:  # a ValueError is a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        allowed = f"a file, its place relative to {folder if folder.name else 'this folder'}"
        raise InputError(f"{where}.file", f"{name}: {reason}", allowed) from None
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return inside | {"file": shown.as_posix(), "content": found}


def contents(value: Any, folder: Path) -> dict[str, str]:
    """The files that a problem names, as :func:`located` has them, and their digests."""
    found: dict[str, str] = {}

    def look(inside: Any) -> None:
        if isinstance(inside, list):
            for item in inside:
                look(item)
        elif isinstance(inside, Mapping):
            if "content" in inside and isinstance(inside.get("file"), str):
                found[inside["file"]] = inside["content"]
            for item in inside.values():
                look(item)

    look(located(value, folder))
    return found


def digest_of(path: Path, python: bool) -> str:
    """Sixteen hexadecimal digits of a file's bytes; of Python, also of what it imports beside it.

    Raises:
        OSError: it cannot be read.
    """
    if not python:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    whole = hashlib.sha256()
    for source in sources(path):
        whole.update(hashlib.sha256(source.read_bytes()).digest())
    return whole.hexdigest()[:16]


def sources(path: Path) -> list[Path]:
    """A Python file, and the modules beside it that it imports relatively, and these in turn."""
    found, left = [], [path]
    while left:
        one = left.pop()
        found.append(one)
        try:
            tree = ast.parse(one.read_bytes())
        except SyntaxError:  # said when it is imported
            continue
        names = {
            name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.level == 1
            for name in ([node.module] if node.module else [alias.name for alias in node.names])
        }
        beside = [path.parent / f"{name.split('.')[0]}.py" for name in sorted(names)]
        left += [p for p in beside if p.is_file() and p not in (*found, *left)]
    return found
