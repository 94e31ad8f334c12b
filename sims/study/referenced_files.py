"""Files that a problem names: their locations and contents. No JAX.

A part of a problem with ``kind: python`` or ``kind: empirical`` names a file relative to the YAML
file. First, paths are made relative to the working directory, and the digest of each file's content
enters the problem: results, checkpoints and fingerprints then depend on the content, and an edited
file makes a new problem. Python is imported only from the YAML file's folder or below, and only
with consent.
"""

import hashlib
import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from sims.base.errors import InputError
from sims.base.files import regular_file
from sims.base.identity import combined_digest
from sims.study.sources import PRESENTATION, folder_sources


class MissingModels(InputError):
    """Raised if trained models that an experiment needs are missing."""


def resolve_files(
    value: Any, folder: Path, location: str = "problem", consent: bool | None = True
) -> Any:
    """Problem, or a part of one, with located files and digests of their content.

    Args:
        value: content of the YAML file.
        folder: folder of that file.
        location: location of the value, for the error line.
        consent: as :func:`resolved_consent` has it; without it, data must be in the folder.

    Returns:
        A copy in which ``file`` is relative to the working directory if it is inside, with its
        digest as ``content``.

    Raises:
        InputError: the file is missing, or is outside the folder.
    """
    if isinstance(value, list):
        resolved_items = []
        for place, item in enumerate(value):
            resolved_items.append(resolve_files(item, folder, f"{location}.{place}", consent))
        return resolved_items
    if not isinstance(value, Mapping):
        return value
    resolved = {}
    for key, item in value.items():
        resolved[key] = resolve_files(item, folder, f"{location}.{key}", consent)
    name = value.get("file")
    if value.get("kind") not in ("python", "empirical") or not isinstance(name, str):
        return resolved
    is_code = value["kind"] == "python"
    path = _find(name, folder, f"{location}.file", is_code, consent)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return resolved | {"file": shown.as_posix(), "content": digest_of(path)}


def without_paths(value: Any) -> Any:
    """A copy without the paths of files whose content stands next to them."""
    if isinstance(value, list):
        return [without_paths(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = value if "content" not in value else {k: v for k, v in value.items() if k != "file"}
    return {key: without_paths(item) for key, item in kept.items()}


def _find(name: str, folder: Path, field: str, is_code: bool, consent: bool | None) -> Path:
    """The path of a file that a problem names.

    Raises:
        InputError: it is not there, or lies where it may not.
    """
    path = Path(os.path.normpath((folder / name).absolute()))
    try:
        regular_file(field, path)
    except InputError as error:
        raise InputError(field, f"{name}: {error.value}", error.allowed) from None
    # A link may leave the folder.
    inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    plain_name = path.suffix == ".py" and {"/", ".."}.isdisjoint(Path(name).parts)
    if is_code and not (inside and plain_name):
        raise InputError(field, name, "a .py file in the YAML file's folder or below")
    if not inside and resolved_consent(consent) is False:
        allowed = "a file in the YAML file's folder or below; elsewhere only with --allow-code"
        raise InputError(field, name, allowed)
    return path


def checkpoint(file: str) -> Path:
    """The path of a trained model's file, as the packages of requirements/models.txt have it.

    They lie in the folder that ``SIMS_MODELS`` names, or in ``models`` of the environment.

    Raises:
        MissingModels: it is not there.
    """
    path = Path(os.environ.get("SIMS_MODELS") or Path(sys.prefix, "models"), file)
    if not path.is_file():
        allowed = "file not found: `make models`, or pip with --no-deps --target, unpacks models"
        raise MissingModels(str(path), allowed)
    return path


def check_consent(location: str, code: str, allow_code: bool | None) -> None:
    """Raise InputError unless there is consent to run the code."""
    if not allow_code:
        allowed = "only with --allow-code, for code you trust (SIMS_ALLOW_CODE=1, allow_code=True)"
        raise InputError(location, code, allowed)


def resolved_consent(allow_code: bool | None) -> bool | None:
    """Consent as given; ``SIMS_ALLOW_CODE=1`` replaces False."""
    return os.environ.get("SIMS_ALLOW_CODE") == "1" if allow_code is False else allow_code


def digest_of(path: Path) -> str:
    """Digest of a file, sixteen hexadecimal digits; for Python, of everything in its folder.

    That, and what it imports from elsewhere, is described in :mod:`sims.study.sources`.

    Raises:
        InputError: the folder of Python code holds too many files.
        OSError: it cannot be read.
    """
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    of_experiment = (path.parent / "experiment.yaml").is_file()
    sources = folder_sources(path.parent, PRESENTATION if of_experiment else ())
    return combined_digest(path.name, sources.digest())


def class_of(path: Path, base: type) -> Any:
    """The one subclass of a class that a Python file defines.

    Raises:
        InputError: it defines none, or several.
    """
    module = load_module(path)
    classes = []
    for value in vars(module).values():
        is_own = getattr(value, "__module__", "") == module.__name__
        if is_own and isinstance(value, type) and issubclass(value, base):
            classes.append(value)
    if len(classes) != 1:
        raise InputError(str(path), f"{len(classes)} classes", f"one subclass of {base.__name__}")
    return classes[0]


def load_module(path: Path) -> ModuleType:
    """Module of a Python file, in a package of its folder (``from .other import …``).

    Folders beside it are packages, too (``from ..house.problems import …``). What is loaded once
    stays until a file of the folder, or what one of them imports, is edited.
    """
    folder = path.parent.resolve()
    outer = f"own_{combined_digest(str(folder), folder_sources(folder).digest())}"
    inner = f"{outer}.{folder.name.replace('.', '_')}"
    if inner not in sys.modules:
        for name, place in ((outer, folder.parent), (inner, folder)):
            package = ModuleType(name)
            package.__path__ = [str(place)]
            sys.modules[name] = package
        importlib.invalidate_caches()
    # Byte code on the disk is known by whole seconds; edits are faster.
    previous = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        return importlib.import_module(f"{inner}.{path.stem}")
    finally:
        sys.dont_write_bytecode = previous
