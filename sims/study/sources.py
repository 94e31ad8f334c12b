"""Sources that a result depends on: modules of this package, files of a user's folder. No JAX.

Of this package they are the modules that a step imports, directly or not, and the other files in
their folders. Of a user's folder every file counts, however code names it, unless its name is in
:data:`IGNORED` or excluded for a step; Python counts by its syntax, anything else by its bytes.
What a file imports from elsewhere outside the installed packages counts, too, with the data next to
it.
"""

import ast
import hashlib
import os
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from sims.base.errors import InputError
from sims.base.identity import combined_digest
from sims.base.members import known_by_name

PACKAGE = Path(__file__).parents[1]
IGNORED = (
    ".DS_Store",
    ".cache",
    ".drawn",
    ".git",
    ".hg",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".points",
    ".pytest_cache",
    ".ruff_cache",
    ".snakemake",
    ".svn",
    "__pycache__",
    "node_modules",
    "results",
    "*.shards",
    "*.py[co]",
    "*.sw[op]",
    "*~",
    ".#*",
)
"""Names of files and folders that never count: caches, editors' files, version control, results."""
WORDS = ("caption.md", "experiment.yaml", "tests.py", "variables.yaml")
"""Files of an experiment's folder that are no code or data of its numbers."""
PRESENTATION = ("statistic.py", "figure.py", *WORDS)
"""Files of an experiment's folder that its numbers do not need, further ones apart: they are the
key ``presentation`` of experiment.yaml."""
MOST_FILES = 10_000
"""Number of files of a folder from which on its code should have a folder of its own."""
LARGEST = 2**28
"""Bytes of a file above which its size and date stand for its content."""
_SWEEP = re.compile(rb"seal: \S+ of sweep .*: [0-9a-f]{64}")
"""Seal of a sweep's files, which may be written next to its code."""


@dataclass
class Sources:
    """Files of a user that count, and modules of this package that they import.

    Attributes:
        files: their paths.
        folder: the folder in which most of them are.
        modules: names of modules.
    """

    folder: Path
    files: list[Path] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)

    def digest(self) -> str:
        """Digest of contents and of names: in the folder, or in the file's own folder elsewhere."""
        entries = []
        for path in self.files:
            inside = path.is_relative_to(self.folder)
            home = self.folder if inside else path.parent.parent
            entries.append(f"{path.relative_to(home).as_posix()} {content(path)}")
        return combined_digest(*sorted(entries))


def folder_sources(
    folder: Path, excluded: Container[str] = (), also: Iterable[str] = ()
) -> Sources:
    """Sources of a folder and of the user's code elsewhere that it imports; nothing is executed.

    Args:
        folder: the folder.
        excluded: names of files, relative to the folder, that do not count.
        also: paths of further files that count, relative to the folder.

    Raises:
        InputError: the folder holds more than :data:`MOST_FILES` files.
    """
    sources = Sources(folder)
    for path in files_below(folder):
        if path.relative_to(folder).as_posix() not in excluded:
            sources.files.append(path)
    for name in also:
        if (folder / name).is_file():
            sources.files.append(folder / name)
    inside = folder.resolve()
    remaining = [path for path in sources.files if path.suffix == ".py"]
    known = {path.resolve() for path in remaining}
    while remaining:
        modules, found = _imports_of(remaining.pop())
        sources.modules |= modules
        for path in sorted(found):
            if path.resolve() in known or path.resolve().is_relative_to(inside):
                continue
            known.add(path.resolve())
            remaining.append(path)
            sources.files += [path, *_data_beside(path)]
    return sources


def _data_beside(path: Path) -> list[Path]:
    """Files in the folder of a Python file that are data."""
    found = []
    for item in sorted(path.parent.iterdir()):
        data = item.suffix != ".py" and item.name not in WORDS
        if data and item.is_file() and not _is_ignored(item):
            found.append(item)
    return found


def files_below(folder: Path) -> list[Path]:
    """Files below a folder that count, in the order of their names; links are followed.

    Raises:
        InputError: there are more than :data:`MOST_FILES`.
    """
    found = list[Path]()
    visited = set[str]()
    for place, folders, names in os.walk(folder, followlinks=True):
        here = Path(place)
        if (real := os.path.realpath(here)) in visited or "pyvenv.cfg" in names:
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not _is_ignored(here / name))
        found += [here / name for name in sorted(names) if not _is_ignored(here / name)]
        if len(found) > MOST_FILES:
            allowed = f"at most {MOST_FILES:,}: give the code a folder of its own"
            raise InputError(str(folder), f"more than {MOST_FILES:,} files", allowed)
    return [path for path in found if path.is_file()]


def _is_ignored(path: Path) -> bool:
    return any(fnmatch(path.name, pattern) for pattern in IGNORED) or _is_of_sweep(path)


def _is_of_sweep(path: Path) -> bool:
    """True for a file that a sweep has written."""
    if path.suffix not in (".nc", ".png") or not path.is_file():
        return False
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 400))
        return _SWEEP.search(file.read()) is not None


def _imports_of(file: Path) -> tuple[set[str], set[Path]]:
    """Modules of this package, and the user's files, that a Python file imports."""
    modules = set[str]()
    found = set[Path]()
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError:  # said when it is imported
        return modules, found
    for name, level in _imports(tree):
        if level == 0 and name.split(".")[0] == PACKAGE.name:
            modules.add(name)
        else:
            found |= _files_of(name, level, file)
    return modules, found


def _imports(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Names of modules that code may import, with the number of leading dots.

    Code for type checkers only does not count.
    """
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        module = getattr(node, "module", None)
        for alias in node.names:
            name = f"{module}.{alias.name}" if module else alias.name
            yield name, getattr(node, "level", 0)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child)


def _files_of(name: str, level: int, file: Path) -> set[Path]:
    """User's Python files that importing a module runs, including its packages'."""
    top, *_ = name.split(".")
    home = file.parent if level else home_of(top)
    if home is None:
        return set()
    for _ in range(level - 1):
        home = home.parent
    files = set()
    for part in name.split("."):
        home /= part
        files |= {home.with_suffix(".py"), home / "__init__.py"}
    return {path for path in files if path.is_file()}


@cache
def home_of(top: str) -> Path | None:
    """Folder of a user's top-level module; None for a built-in or installed one."""
    spec = PathFinder.find_spec(top)
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ())
    if known_by_name(spec.origin or (places[0] if places else None)):
        return None
    return Path(places[0]).parent if places else Path(str(spec.origin)).parent


def package_sources(modules: Iterable[str]) -> list[Path]:
    """Files of this package that importing modules of it needs, directly or not.

    In the folder of every module all files that are not Python count: what is compiled, filled in
    or read.
    """
    graph = _graph()
    found = set[str]()
    for name in modules:
        while name not in graph.modules:  # a function's name behind its module's
            name = name.rpartition(".")[0]
        found |= {name, *graph.find_upstream_modules(name)}
    paths = set[Path]()
    for name in found:
        place = PACKAGE.joinpath(*name.split(".")[1:])
        paths.add(place / "__init__.py" if place.is_dir() else place.with_suffix(".py"))
    beside = set[Path]()
    for folder in {path.parent for path in paths}:
        beside |= {path for path in folder.iterdir() if path.is_file() and path.suffix != ".py"}
    return sorted(path for path in paths | beside if not _is_ignored(path))


@cache
def _graph():  # type: ignore[no-untyped-def]
    import grimp

    graph = grimp.build_graph(PACKAGE.name, exclude_type_checking_imports=True, cache_dir=None)
    for name in graph.modules - {PACKAGE.name}:  # a module's import runs its package
        graph.add_import(importer=name, imported=name.rpartition(".")[0])
    return graph


def content(path: Path) -> str:
    """Digest of a file: of Python its syntax, without docstrings, comments and layout.

    For a file above :data:`LARGEST` bytes size and date stand for the content.
    """
    try:
        status = path.stat()
    except FileNotFoundError:  # an editor's, gone since its folder was listed
        return "gone"
    if status.st_size > LARGEST:
        return f"{status.st_size} {status.st_mtime_ns}"
    text = path.read_bytes()
    if path.suffix == ".py":
        with suppress(SyntaxError, ValueError):  # said when it is imported
            return _syntax(text)
    return hashlib.sha256(text).hexdigest()


@cache
def _syntax(text: bytes) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [x for x in body if not _is_text(x)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]
