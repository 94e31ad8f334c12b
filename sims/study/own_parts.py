"""Parts of a problem from a Python file of the user's own: ``kind: python`` in YAML.

What the name stands for may be the part itself, or a function:

==========  ==========================================================================
target      ``m(x, **options) -> (…)`` of points (…, d), or a :class:`~sims.problem.Target`
kernel      a log-kernel ``(query, key, bandwidth, **options)``; or a
            :class:`~sims.problem.Kernel` or :class:`~sims.weights.WeightRule`, or a function
            ``(**options)`` that makes one
design      ``(dimension, **options)`` that makes a :class:`~sims.problem.Design`; or a sampler
            ``(key, n, dtype, **options) -> (n, d)``, for simulation alone; or a design
==========  ==========================================================================
"""

import functools
import inspect
import json
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import ConfigDict, Field

from sims.checks import said
from sims.errors import InputError, one_of
from sims.problem import CustomDesign, CustomTarget, Design, Kernel, Target
from sims.study.located import digest_of
from sims.validation import Strict
from sims.weights import WeightRule


class PythonChoice(Strict):
    """A function or object of a Python file; further keys are passed to it by name."""

    model_config = ConfigDict(extra="allow")

    kind: Literal["python"]
    file: str = Field(description="its place relative to the YAML file")
    name: str = Field(description="of the function or object in the file")
    content: str | None = Field(
        default=None, description="digest of the file, entered when it is read"
    )

    @property
    def options(self) -> dict[str, Any]:
        """The further keys."""
        return dict(self.model_extra or {})

    @property
    def where(self) -> str:
        """File and name, for error lines."""
        return f"{self.file}: {self.name}"

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


def target(choice: PythonChoice, dimension: int) -> Target:
    """The target that a file's function is.

    Raises:
        InputError: it is none; the line names file and function.
    """
    made = _found(choice)
    if isinstance(made, Target):
        return _whole(choice, made)
    bound = _bound(choice, made, 1, "m(x, **options) of points (…, d)")
    return _checked(choice, CustomTarget, dimension, bound)


def kernel(choice: PythonChoice) -> Kernel | WeightRule:
    """The kernel or weight rule that a file's function or object is.

    Raises:
        InputError: it is none.
    """
    made = _found(choice)
    if isinstance(made, Kernel | WeightRule):
        return _whole(choice, made)
    allowed = (
        "log_kernel(query, key, bandwidth, **options), a Kernel, a WeightRule, or what makes one"
    )
    if _takes(made, 3, choice.options):
        return _log_kernel(choice.content or "", choice.name, _bound(choice, made, 3, allowed))
    return _made(choice, Kernel | WeightRule, _bound(choice, made, 0, allowed), allowed)


def design(choice: PythonChoice, dimension: int) -> Design:
    """The design that a file's function or object is.

    Raises:
        InputError: it is none.
    """
    made = _found(choice)
    if isinstance(made, Design):
        return _whole(choice, made)
    allowed = "a Design, make(dimension, **options) -> Design, or sampler(key, n, dtype, **options)"
    if _takes(made, 3, choice.options):
        return _checked(choice, CustomDesign, dimension, _bound(choice, made, 3, allowed))
    return _made(choice, Design, _bound(choice, made, 1, allowed), allowed, dimension)


def _found(choice: PythonChoice) -> Any:
    """What the name stands for."""
    path = Path(choice.file)
    try:
        content = choice.content or digest_of(path)
    except OSError as error:
        raise InputError(choice.file, error.strerror, "a Python file") from None
    members = vars(_module(str(path.resolve()), content))
    if choice.name not in members:
        names = [n for n, v in members.items() if callable(v) and not n.startswith("_")]
        raise InputError(f"{choice.file}: name", choice.name, one_of(names, choice.name) or "none")
    return members[choice.name]


class _Loader(SourceFileLoader):
    """Reads the source every time: byte code is known by whole seconds, edits are faster."""

    def path_stats(self, path: str) -> dict[str, Any]:  # type: ignore[override]
        raise OSError(path)


@functools.lru_cache(maxsize=64)
def _module(path: str, content: str) -> ModuleType:
    """The file as a module of a package of its folder, once for each content."""
    package = f"own_{content}"
    sys.modules[package] = parent = ModuleType(package)
    parent.__path__ = [str(Path(path).parent)]
    name = f"{package}.{Path(path).stem}"
    spec = spec_from_loader(name, _Loader(name, path))
    assert spec is not None  # a loader is given
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        allowed = "a Python file that can be imported (modules beside it: from .name import …)"
        raise InputError(path, said(error), allowed) from error
    return module


def _takes(function: Any, count: int, options: dict[str, Any]) -> bool:
    """Whether it can be called with so many positional arguments and these options."""
    try:
        inspect.signature(function).bind(*range(count), **options)
    except (TypeError, ValueError):  # a ValueError: no signature is known
        return False
    return True


def _bound(choice: PythonChoice, function: Any, count: int, allowed: str) -> Callable[..., Any]:
    """The function with its options; the same object for the same file, name and options."""
    if not callable(function):
        raise InputError(choice.where, type(function).__name__, allowed)
    options = choice.options
    if not _takes(function, count, options):
        parameters = list(inspect.signature(function).parameters)
        for name in options:
            if name not in parameters:
                known = one_of(parameters[count:], name) or "no options"
                raise InputError(f"{choice.where}, options", name, known)
        raise InputError(choice.where, f"{choice.name}({', '.join(parameters)})", allowed)
    return _partial(function, json.dumps(options, sort_keys=True)) if options else function


@functools.lru_cache(maxsize=256)
def _partial(function: Callable[..., Any], options: str) -> Callable[..., Any]:
    return functools.partial(function, **json.loads(options))


@functools.lru_cache(maxsize=256)
def _log_kernel(content: str, name: str, function: Callable[..., Any]) -> Kernel:
    """A kernel of that log-kernel: programs are kept by it."""
    del content  # of the function, which changes with it
    return Kernel(name, function)


def _whole(choice: PythonChoice, made: Any) -> Any:
    """The object itself, which takes no options."""
    if choice.options:
        allowed = f"nothing: {choice.name} is an object, no function"
        raise InputError(f"{choice.where}, options", next(iter(choice.options)), allowed)
    return made


def _made(choice: PythonChoice, kind: Any, make: Any, allowed: str, *arguments: Any) -> Any:
    """What a function makes, of that kind."""
    made = _checked(choice, make, *arguments)
    if not isinstance(made, kind):
        raise InputError(choice.where, f"{type(made).__name__} made", allowed)
    return made


def _checked(choice: PythonChoice, make: Callable[..., Any], *arguments: Any) -> Any:
    """What is made, with errors that name file and function."""
    try:
        return make(*arguments)
    except InputError as error:
        raise InputError(f"{choice.where}: {error.field}", error.value, error.allowed) from error
    except Exception as error:
        raise InputError(choice.where, said(error), "a call that returns") from error
