"""Parts of a problem from the user's Python file: ``kind: python`` in YAML.

It is imported only with consent, ``allow_code`` in the context of validation; None is for a plan,
which uses stand-ins for such parts. The name can denote the part itself, or a function:

==========  ==========================================================================
target      ``m(x, **options) -> (…)`` of points (…, d), or a :class:`~sims.problem.Target`
kernel      a log-kernel ``(query, key, bandwidth, **options)``; or a
            :class:`~sims.problem.Kernel` or :class:`~sims.weights.WeightRule`, or a function
            ``(**options)`` that makes one
design      ``(dimension, **options)`` that makes a :class:`~sims.problem.Design`; or a sampler
            ``(key, n, dtype, **options) -> (n, d)``, for simulation only; or a design
==========  ==========================================================================
"""

import functools
import inspect
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ConfigDict, PrivateAttr

from sims.base.checks import error_summary
from sims.base.errors import InputError, one_of
from sims.base.validation import Strict
from sims.problem import CustomDesign, CustomTarget, Design, Kernel, StudentDesign, Target
from sims.problem.kernels import gaussian_log
from sims.study.referenced_files import check_consent, load_module, resolved_consent
from sims.weights import WeightRule


class PythonChoice(Strict):
    """A function or object of a Python file; further keys are passed to it by name."""

    model_config = ConfigDict(extra="allow")

    kind: Literal["python"]
    file: str
    """Path relative to the YAML file."""
    name: str
    """Name of the function or object in the file."""
    content: str | None = None
    """Digest of the file, entered when it is read."""
    _allow_code: bool | None = PrivateAttr(default=False)  # which no key of a file can set

    def model_post_init(self, context: dict[str, bool | None] | None) -> None:
        """Store the consent of the context, and refuse a file without consent."""
        if context is not None:
            self._allow_code = resolved_consent(context["allow_code"])
            if self._allow_code is not None:
                check_consent("file", self.file, self._allow_code)

    @property
    def options(self) -> dict[str, Any]:
        """Further keys."""
        return dict(self.model_extra or {})


def unread(problems: Iterable[Any]) -> list[str]:
    """The line of a plan, if any, that names the Python files of problems: none was imported."""
    files = set()
    for problem in problems:
        for part in (problem.design, problem.target, problem.heads.kernel):
            if isinstance(part, PythonChoice):
                files.add(part.file)
    stand_ins = "a CustomTarget, Kernel or StudentDesign in its place"
    names = ", ".join(sorted(files))
    return [f"code         {names}: not read; {stand_ins}"] if files else []


def target(choice: PythonChoice, dimension: int) -> Target:
    """The target that a function or object of a file defines.

    Raises:
        InputError: it defines none; the line names file and function.
    """
    if choice._allow_code is None:
        return CustomTarget(dimension, _first)
    allowed = "m(x, **options) of points (…, d), or a Target"
    wrap = functools.partial(CustomTarget, dimension)
    return _part(choice, Target, allowed, wrap, 1)


def _first(x: Any) -> Any:
    """The first coordinate of points."""
    return x[..., 0]


def kernel(choice: PythonChoice) -> Kernel | WeightRule:
    """The kernel or weight rule that a function or object of a file defines.

    Raises:
        InputError: it defines none.
    """
    allowed = (
        "log_kernel(query, key, bandwidth, **options), a Kernel, a WeightRule, or what makes one"
    )
    wrap = functools.partial(_log_kernel, choice.name)
    if choice._allow_code is None:
        return wrap(gaussian_log)
    return _part(choice, Kernel | WeightRule, allowed, wrap, 3, ())


def design(choice: PythonChoice, dimension: int) -> Design:
    """The design that a function or object of a file defines.

    Raises:
        InputError: it defines none.
    """
    allowed = "a Design, make(dimension, **options) -> Design, or sampler(key, n, dtype, **options)"
    if choice._allow_code is None:
        return StudentDesign(np.eye(dimension), freedom=4.0)
    wrap = functools.partial(CustomDesign, dimension)
    return _part(choice, Design, allowed, wrap, 3, (dimension,))


def _part(
    choice: PythonChoice,
    kind: Any,
    allowed: str,
    wrap: Callable[[Any], Any],
    count: int,
    arguments: tuple[Any, ...] | None = None,
) -> Any:
    """The object of a file, or what its function is or makes.

    Args:
        choice: file, name and options.
        kind: classes that the part is of.
        allowed: allowed kinds of the part, for the error line.
        wrap: makes the part of a function of so many arguments.
        count: as many.
        arguments: of a function that makes the part; None where none may.
    """
    location = f"{choice.file}: {choice.name}"
    options = choice.options
    entry = _defined(choice)
    if isinstance(entry, kind) and not options:
        return entry
    try:
        if _accepts(entry, count, options):
            return wrap(_partial(entry, json.dumps(options, sort_keys=True)))
        if arguments is not None and _accepts(entry, len(arguments), options):
            part = entry(*arguments, **options)
            if isinstance(part, kind):
                return part
            raise InputError(location, f"{type(part).__name__} made", allowed)
    except InputError as error:
        raise InputError(f"{location}: {error.field}", error.value, error.allowed) from error
    except Exception as error:
        raise InputError(location, error_summary(error), "a call that returns") from error
    is_function = inspect.isfunction(entry)
    shown = f"{choice.name}{inspect.signature(entry)}" if is_function else type(entry).__name__
    raise InputError(location, f"{shown} with options {', '.join(options) or 'none'}", allowed)


def _defined(choice: PythonChoice) -> Any:
    """The object of that name that a file defines.

    Raises:
        InputError: there is no consent to run the file, it cannot be imported, or it defines none.
    """
    check_consent(f"{choice.file}: {choice.name}", "code", choice._allow_code)
    try:
        module = load_module(Path(choice.file))
    except Exception as error:
        importable = "a Python file that can be imported (modules beside it: from .name import …)"
        raise InputError(choice.file, error_summary(error), importable) from error
    names = []
    for name, value in vars(module).items():
        # Functions and classes state their module; other objects belong to the file.
        bare = inspect.unwrap(value)
        if not hasattr(bare, "__qualname__") or bare.__module__ == module.__name__:
            if name == choice.name:
                return value
            if callable(value) and not name.startswith("_"):
                names.append(name)
    allowed = f"defined in this file: {one_of(names, choice.name) or 'none'}"
    raise InputError(f"{choice.file}: name", choice.name, allowed)


def _accepts(function: Any, count: int, options: dict[str, Any]) -> bool:
    """True if the function takes so many positional arguments and these options."""
    try:
        inspect.signature(function).bind(*range(count), **options)
    except (TypeError, ValueError):  # a ValueError: no signature is known
        return False
    return True


@functools.lru_cache(maxsize=256)
def _partial(function: Callable[..., Any], options: str) -> Callable[..., Any]:
    """The function with its options; the same object for the same ones, by which programs go."""
    return functools.partial(function, **json.loads(options)) if options != "{}" else function


_log_kernel = functools.lru_cache(maxsize=256)(Kernel)
"""A kernel of a name and a log-kernel; the same object for the same ones, as above."""
