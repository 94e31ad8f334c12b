"""Sources that a result depends on, found by what code imports and names. No JAX.

In this package they are the modules that a step imports, directly or not. In a user's code they are
the Python files that it imports, from its folder, from packages below, or from elsewhere outside
the installed packages; and the data files below its folder that it names: by name, by suffix, by a
pattern, or by their folder.
"""

import ast
import hashlib
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from sims.base.errors import InputError
from sims.base.identity import known_by_name

PACKAGE = Path(__file__).parents[1]
_COMPILED = (".cc", ".cu", ".h", ".j2")
"""Suffixes of package files that modules in the same folder compile or fill in."""


@dataclass
class Sources:
    """Modules and files of the user's code.

    Attributes:
        files: Python files, in the order in which they are met.
        texts: string constants in them, which may name data files.
        modules: names that they import from this package.
    """

    files: list[Path] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    def data_files(self, folder: Path, texts: Iterable[str] = ()) -> list[Path]:
        """Data files below a folder that the code, or one of the texts, names."""
        names = {text for text in {*self.texts, *texts} if text.strip("./ ")}
        return [path for path in files_below(folder) if _is_named(path, folder, names)]


def own_sources(path: Path, without: Container[str] = ()) -> Sources:
    """Sources of a Python file and of the user's code that it imports; nothing is executed.

    Args:
        path: the file.
        without: methods of its classes that do not count.
    """
    sources = Sources()
    remaining = [path]
    while remaining:
        file = remaining.pop()
        sources.files.append(file)
        try:
            tree = _parse(file.read_bytes(), without if file == path else ())
        except SyntaxError:  # said when it is imported
            continue
        found = set[Path]()
        for node in _running_nodes(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                sources.texts.add(node.value)
            for name, level in _imports(node):
                if level == 0 and name.split(".")[0] == PACKAGE.name:
                    sources.modules.add(name)
                else:
                    found |= _files_of(name, level, file)
        found -= {*sources.files, *remaining}
        remaining += sorted(found)
    return sources


def _parse(text: bytes | str, without: Container[str]) -> ast.Module:
    """The syntax of a file, but for some methods of its classes."""
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            node.body = [item for item in node.body if _name_of(item) not in without]
    return tree


def _name_of(item: ast.stmt) -> str:
    """Name that a statement of a class defines; "" if it is neither a method nor one name."""
    if isinstance(item, ast.Assign):
        return getattr(item.targets[0], "id", "")
    return getattr(item, "name", "")


def _running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and its descendants, except code for type checkers only."""
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _running_nodes(child)


def _imports(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Names of modules that a statement may import, with the number of leading dots."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, 0
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield f"{node.module}.{alias.name}" if node.module else alias.name, node.level
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "from_module":
        for argument in node.args:
            if isinstance(argument, ast.Constant):
                yield str(argument.value), 1


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


def files_below(folder: Path) -> list[Path]:
    """Files below a folder, other than Python's and hidden ones."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__pycache__")):
            continue
        if path.is_dir() and not path.is_symlink() and not (path / "pyvenv.cfg").exists():
            found += files_below(path)
        elif path.is_file() and path.suffix != ".py":
            found.append(path)
    return found


def _is_named(path: Path, folder: Path, names: set[str]) -> bool:
    place = path.relative_to(folder)
    parts = {*place.parts, *map(str, place.parents), str(place), path.suffix}
    patterns = (name for name in names if "*" in name)
    return not names.isdisjoint(parts) or any(fnmatch(str(place), f"*{p}") for p in patterns)


def package_sources(modules: Iterable[str]) -> list[Path]:
    """Files of this package that importing modules of it needs, directly or not."""
    graph = _graph()
    remaining = [*modules]
    found = set[str]()
    while remaining:
        name = remaining.pop()
        while name not in graph.modules:  # a function's name behind its module's
            name = name.rpartition(".")[0]
        upstream = {name, *graph.find_upstream_modules(name)}
        parents = {module.rpartition(".")[0] for module in upstream} - {""}
        remaining += sorted(parents - upstream - found)
        found |= upstream
    paths = set[Path]()
    for name in found:
        place = PACKAGE.joinpath(*name.split(".")[1:])
        paths.add(place / "__init__.py" if place.is_dir() else place.with_suffix(".py"))
    folders = {path.parent for path in paths}
    beside = {p for folder in folders for p in folder.iterdir() if p.suffix in _COMPILED}
    return sorted(paths | beside)


@cache
def _graph():  # type: ignore[no-untyped-def]
    import grimp

    graph = grimp.build_graph(PACKAGE.name, exclude_type_checking_imports=True, cache_dir=None)
    # The study of an experiment without code: of the others none.
    graph.remove_import(importer="sims.study.loading", imported="sims.study.drawn")
    return graph


def syntax(path: Path, without: frozenset[str] = frozenset()) -> str:
    """The text of a file; of Python its syntax, without docstrings, comments and layout.

    Args:
        path: the file.
        without: methods of its classes that do not count.

    Raises:
        InputError: it is no Python.
    """
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        return _syntax(path.read_text(encoding="utf-8"), without)
    except SyntaxError as error:
        raise InputError(str(path), f"a mistake at line {error.lineno}", "Python") from None


@cache
def _syntax(text: str, without: frozenset[str]) -> str:
    tree = _parse(text, without)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [x for x in body if not _is_text(x)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


def combined_digest(*parts: str) -> str:
    """Sixteen hexadecimal digits of texts in their order."""
    combined = hashlib.sha256()
    for text in parts:
        combined.update(hashlib.sha256(text.encode()).digest())
    return combined.hexdigest()[:16]
