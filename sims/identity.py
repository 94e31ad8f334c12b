"""What a result is of, as a digest: arrays by their values, functions by their code.

Two functions of the same name are different functions. A function is known by its byte code, its
constants, defaults and closure, and by everything of the user's own that its code names, followed
through functions, objects and modules; functions of this package and of installed ones are known
by their name alone, since a run's provenance holds their versions. What cannot be known so (an
object of a compiled extension, say) is refused in one line wherever the identity matters.
"""

import dataclasses
import functools
import hashlib
import os
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from sims.errors import InputError
from sims.places import CARRIED

_PLAIN = bool | int | float | complex | str | bytes | np.dtype
_OWN = str(Path(__file__).parent.resolve())
_INSTALLED = tuple(
    str(Path(folder).resolve())
    for folder in (
        str(Path(__file__).parent),
        *(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")),
    )
)
"""Folders whose code is known by name: this package's, the interpreter's and installed ones'."""
_EXPERIMENTS = f"{CARRIED.resolve() / 'experiments'}{os.sep}"
"""Not so experiments, which other processes cannot import by name, though a wheel carries them."""


def digest(*values: object) -> str:
    """Sixteen hexadecimal digits that differ wherever the values do.

    Args:
        values: numbers, text, arrays (NumPy's or JAX's), containers, dataclasses and pytree
            modules, functions, ``functools.partial`` and objects of classes written in Python.

    Raises:
        InputError: a value has no identity that can be known.
    """
    whole = hashlib.sha256()
    for part in _parts(values, set()):
        whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()[:16]


def _parts(value: object, seen: set[int]) -> Iterator[bytes]:
    if value is None or value is ... or isinstance(value, _PLAIN):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield from _parts((key, value[key]), seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(b"".join(_parts(item, seen)) for item in value)
    elif isinstance(value, list | tuple):
        yield f"sequence {type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from _parts(item, seen)
    elif id(value) in seen:
        yield b"seen before"
    else:
        yield from _parts_of_object(value, seen | {id(value)})


def _parts_of_object(value: object, seen: set[int]) -> Iterator[bytes]:
    if isinstance(value, types.ModuleType):
        yield f"module {value.__name__}".encode()
        if not known_by_name(getattr(value, "__file__", None)):
            yield Path(str(value.__file__)).read_bytes()
    elif isinstance(value, functools.partial):
        yield from _parts((value.func, value.args, value.keywords), seen)
    elif isinstance(value, types.MethodType):
        yield from _parts((value.__func__, value.__self__), seen)
    elif isinstance(value, types.FunctionType):
        yield from _parts_of_function(value, seen)
    elif isinstance(value, type):
        yield from _parts_of_class(value, seen)
    elif hasattr(value, "__array__") and hasattr(value, "dtype"):
        array = np.asarray(value)
        yield f"{array.dtype}{array.shape}".encode() + array.tobytes()
    elif dataclasses.is_dataclass(value):
        yield from _parts(type(value), seen)
        for field in dataclasses.fields(value):
            yield from _parts((field.name, getattr(value, field.name, None)), seen)
    elif callable(getattr(value, "__wrapped__", None)):  # a jitted function, a cached one
        yield from _parts(getattr(value, "__wrapped__", None), seen)
    elif isinstance(value, types.BuiltinFunctionType | np.ufunc) or (
        callable(value) and _installed_object(value) and hasattr(value, "__name__")
    ):
        yield f"installed {getattr(value, '__module__', '')}.{value.__name__}".encode()
    elif name := _installed_name(value):
        yield f"installed {name}".encode()
    elif hasattr(value, "__dict__"):
        yield from _parts(type(value), seen)
        yield from _parts(vars(value), seen)
    else:
        raise InputError(
            "identity",
            type(value).__name__,
            "functions, arrays, numbers and text: a result must be known by what made it",
        )


def _parts_of_function(function: types.FunctionType, seen: set[int]) -> Iterator[bytes]:
    yield f"function {function.__qualname__}".encode()
    installed = known_by_name(function.__code__.co_filename)
    if installed:
        yield str(function.__module__).encode()
    if not installed or function.__code__.co_filename.startswith(_OWN):
        # What a factory bound tells its functions apart.
        yield from _parts((function.__defaults__, function.__kwdefaults__), seen)
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            yield from _parts((name, cell.cell_contents), seen)
    if installed:
        return
    names: set[str] = set()
    for code in _codes(function.__code__):
        names.update(code.co_names)
        yield code.co_code
        constants = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
        yield from _parts(constants, seen)
        yield repr((code.co_names, code.co_varnames)).encode()
    for name in sorted(names & set(function.__globals__)):
        yield from _parts((name, function.__globals__[name]), seen)


def _parts_of_class(cls: type, seen: set[int]) -> Iterator[bytes]:
    if _installed_object(cls):
        yield f"class {cls.__module__}.{cls.__qualname__}".encode()
        return
    # Not the module's name, which says where the code stands and not what it is.
    yield f"class {cls.__qualname__}".encode()
    for name, member in sorted(vars(cls).items()):
        inner = getattr(member, "__func__", getattr(member, "fget", member))
        if isinstance(inner, types.FunctionType):
            yield from _parts((name, inner), seen)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def known_by_name(file: str | None) -> bool:
    """Whether a file is the interpreter's, this package's or another one's, but no experiment's.

    None is built in.
    """
    if file is None:
        return True
    return file.startswith(("<frozen", *_INSTALLED)) and not file.startswith(_EXPERIMENTS)


def _installed_object(value: object) -> bool:
    module = sys.modules.get(getattr(value, "__module__", None) or "builtins")
    return (
        known_by_name(getattr(module, "__file__", None)) and module is not sys.modules["__main__"]
    )


def _installed_name(value: object) -> str | None:
    """Where an object without a name of its own, such as SciPy's norm, stands when installed."""
    home = type(value).__module__
    module = sys.modules.get(home)
    if module is None or not _installed_object(type(value)):
        return None
    names = [name for name, member in vars(module).items() if member is value]
    return f"{home}.{names[0]}" if names else None
