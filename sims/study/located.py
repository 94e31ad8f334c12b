"""Files that a problem names: where they are, and what they hold. No JAX.

A part of a problem with ``kind: python`` or ``kind: empirical`` names a file, by its place relative
to the YAML file. Before anything else is done with such a problem its paths are made those of this
process, and the digest of what the files hold goes into the problem: results, checkpoints and
fingerprints then belong to the content, and an edited file is another problem. Python is imported
only from beside the YAML file or below, and only by consent.
"""

import ast
import hashlib
import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from sims.errors import InputError


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
        InputError: there is no such file, or it is Python from elsewhere.
    """
    if isinstance(value, list):
        return [located(item, folder, f"{where}.{i}") for i, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    inside = {key: located(item, folder, f"{where}.{key}") for key, item in value.items()}
    name = value.get("file")
    if value.get("kind") not in ("python", "empirical") or not isinstance(name, str):
        return inside
    path = Path(os.path.normpath((folder / name).absolute()))
    try:
        real = Path(os.path.realpath(path))  # a link may leave the folder
        below = real.is_relative_to(os.path.realpath(folder))
        named = path.suffix == ".py" and {"/", ".."}.isdisjoint(Path(name).parts)
        if value["kind"] == "python" and not (below and named):
            raise InputError(f"{where}.file", name, "a .py file beside the YAML file or below it")
        found = digest_of(path)
    except InputError:
        raise
    except (OSError, ValueError) as error:  # the latter also of a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        allowed = f"a file, its place relative to {folder if folder.name else 'this folder'}"
        raise InputError(f"{where}.file", f"{name}: {reason}", allowed) from None
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return inside | {"file": shown.as_posix(), "content": found}


def check_consent(where: str, code: str, allow_code: bool | None) -> None:
    """Raise InputError unless there is consent to run the code."""
    if not allow_code:
        allowed = "code that you trust, with --allow-code (SIMS_ALLOW_CODE=1, allow_code=True)"
        raise InputError(where, code, allowed)


def consented(allow_code: bool | None) -> bool | None:
    """Consent as it is given, or in place of False by ``SIMS_ALLOW_CODE=1``."""
    return os.environ.get("SIMS_ALLOW_CODE") == "1" if allow_code is False else allow_code


def digest_of(path: Path) -> str:
    """Sixteen hexadecimal digits of a file's bytes; of Python, also of what it imports beside it.

    Raises:
        OSError: it cannot be read.
    """
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    whole = b"".join(hashlib.sha256(source.read_bytes()).digest() for source in sources(path))
    return hashlib.sha256(whole).hexdigest()[:16]


def sources(path: Path) -> list[Path]:
    """A Python file, and the modules beside it that it imports relatively, and these in turn."""
    found, left = [], [path]
    while left:
        one = left.pop()
        found.append(one)
        try:
            nodes = ast.walk(ast.parse(one.read_bytes()))
        except SyntaxError:  # said when it is imported
            continue
        beside = {
            path.parent / f"{(node.module or alias.name).split('.')[0]}.py"
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.level == 1
            for alias in node.names
        }
        left += [p for p in sorted(beside) if p.is_file() and p not in (*found, *left)]
    return found


def loaded(path: Path) -> ModuleType:
    """A Python file as a module of a package of its folder (``from .beside import …``).

    What is loaded once stays until a Python file of the folder is edited.
    """
    folder = path.parent.resolve()
    texts = [source.read_bytes() for source in sorted(folder.glob("*.py"))]
    package = f"own_{hashlib.sha256(repr((str(folder), texts)).encode()).hexdigest()[:16]}"
    if package not in sys.modules:
        sys.modules[package] = parent = ModuleType(package)
        parent.__path__ = [str(folder)]
        importlib.invalidate_caches()
    # Byte code on the disk is known by whole seconds; edits are faster.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        return importlib.import_module(f"{package}.{path.stem}")
    finally:
        sys.dont_write_bytecode = before
