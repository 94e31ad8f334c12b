"""Digests of the inputs of a result: arrays by their values, functions by their code.

Functions with the same name can differ. A user's function is identified by its byte code,
constants, defaults and closure, and by all of the user's code that it names, through functions,
objects and modules. Functions of this package and of installed ones are identified by name and
bound values, since a run's provenance has their versions. Anything else (an object of a compiled
extension, say) is refused in one line.
"""

import dataclasses
import functools
import hashlib
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sims.base.errors import InputError
from sims.base.places import CARRIED

_PLAIN = bool | int | float | complex | str | bytes | np.dtype | None | types.EllipsisType
_INSTALLED = (
    "<frozen",
    str(Path(__file__).parent.parent.resolve()),
    *(str(Path(sysconfig.get_path(k)).resolve()) for k in ("stdlib", "purelib", "platlib")),
)
"""Folders whose code is identified by name: this package, the interpreter, installed packages."""
_EXPERIMENTS = f"{CARRIED.resolve() / 'experiments'}{os.sep}"
"""Experiments are identified by code: other processes cannot import them by name."""


def digest(*values: object) -> str:
    """Sixteen hexadecimal digits that identify the values.

    Args:
        values: numbers, text, arrays (NumPy's or JAX's), containers, dataclasses and pytree
            modules, functions, ``functools.partial`` and objects of classes written in Python.

    Raises:
        InputError: a value cannot be identified.
    """
    return _combine(_parts(values, frozenset(), _encode_exact))


def rounded_digest(*values: object) -> str:
    """Digest with numbers to six digits, so that machines that round differently agree.

    An array of floating-point numbers enters by two weighted sums of the sizes of its entries, a
    class by its name: values count, but not code.
    """
    return _combine(_parts(values, frozenset(), _encode_rounded))


def _combine(parts: Iterable[bytes]) -> str:
    combined = hashlib.sha256()
    for part in parts:
        combined.update(hashlib.sha256(part).digest())
    return combined.hexdigest()[:16]


def _encode_exact(value: Any) -> bytes:
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}".encode()
    array = np.asarray(value)
    return f"{array.dtype}{array.shape}".encode() + array.tobytes()


def _encode_rounded(value: Any) -> bytes:
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return _encode_exact(value)
    sizes = np.abs(array.astype(float)).ravel()
    weights = 1 + np.arange(sizes.size) % 97
    return f"{array.shape} {sizes.sum():.5e} {(weights * sizes).sum():.5e}".encode()


def known_by_name(file: str | None) -> bool:
    """True for a file of the interpreter, this package or an installed one, except experiments.

    None stands for built-in code.
    """
    if file is None:
        return True
    path = _real(file)
    return path.startswith(_INSTALLED) and not path.startswith(_EXPERIMENTS)


@functools.cache
def _real(file: str) -> str:
    """Path without links: an environment may lie behind one."""
    return file if file.startswith("<") else os.path.realpath(file)


def _installed(value: object) -> bool:
    module = sys.modules.get(getattr(value, "__module__", None) or "builtins")
    is_script = module is sys.modules["__main__"]
    return not is_script and known_by_name(getattr(module, "__file__", None))


def _parts(value: Any, seen: frozenset[int], encode: Callable[[Any], bytes]) -> Iterator[bytes]:
    """Parts of a value; ``encode`` encodes numbers, text and arrays."""
    is_array = hasattr(value, "__array__") and hasattr(value, "dtype")
    if isinstance(value, _PLAIN) or (is_array and not isinstance(value, type)):
        yield encode(value)
        return
    if isinstance(value, type) and encode is _encode_rounded:
        yield f"class {value.__qualname__}".encode()
        return
    if isinstance(value, set | frozenset):
        yield from sorted(b"".join(_parts(item, seen, encode)) for item in value)
        return
    if id(value) in seen:
        yield b"seen before"
        return
    for part in _members(value):
        yield from [part] if isinstance(part, bytes) else _parts(part, seen | {id(value)}, encode)


@functools.singledispatch
def _members(value: Any) -> Iterator[Any]:
    """Members of a value; bytes are of the value itself, other members are digested in turn."""
    if dataclasses.is_dataclass(value):
        yield type(value)
        yield [
            (field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)
        ]
    elif callable(inner := getattr(value, "__wrapped__", None)):  # a jitted function, a cached one
        yield inner
    elif (qualified := _name(value)) is not None:
        yield f"installed {qualified}".encode()
    elif hasattr(value, "__dict__"):
        yield (type(value), vars(value))
    else:
        allowed = "functions, arrays, numbers and text: a result must be known by what made it"
        raise InputError("identity", type(value).__name__, allowed)


@_members.register(Mapping)
def _members_of_mapping(value: Mapping[Any, Any]) -> Iterator[Any]:
    yield from sorted(value.items(), key=repr)


@_members.register(list)
@_members.register(tuple)
def _members_of_sequence(value: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    yield f"{type(value).__name__} {len(value)}".encode()
    yield from value


@_members.register(types.ModuleType)
def _members_of_module(value: types.ModuleType) -> Iterator[bytes]:
    yield f"module {value.__name__}".encode()
    if not known_by_name(getattr(value, "__file__", None)):
        yield Path(str(value.__file__)).read_bytes()


@_members.register(functools.partial)
def _members_of_partial(value: functools.partial[Any]) -> Iterator[Any]:
    yield (value.func, value.args, value.keywords)


@_members.register(types.MethodType)
def _members_of_method(value: types.MethodType) -> Iterator[Any]:
    yield (value.__func__, value.__self__)


@_members.register(type)
def _members_of_class(value: type) -> Iterator[Any]:
    installed = _installed(value)
    # Not the module's name of one's own, which says where the code stands and not what it is.
    yield f"class {value.__module__ if installed else ''}.{value.__qualname__}".encode()
    if installed:
        return
    for name, member in sorted(vars(value).items()):
        inner = getattr(member, "__func__", getattr(member, "fget", member))
        if isinstance(inner, types.FunctionType):
            yield (name, inner)


@_members.register(types.FunctionType)
def _function(function: types.FunctionType) -> Iterator[Any]:
    code = function.__code__
    yield f"function {function.__qualname__}".encode()
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    bound = (function.__defaults__, function.__kwdefaults__, code.co_freevars, cells)
    if known_by_name(code.co_filename):
        yield function.__module__
        if _real(code.co_filename).startswith(_INSTALLED[1]):
            yield bound  # what a factory of ours bound tells its functions apart
        return
    yield bound
    names: set[str] = set()
    codes = [code]
    while codes:
        code_object = codes.pop()
        constants: list[object] = []
        for constant in code_object.co_consts:
            if isinstance(constant, types.CodeType):
                codes.append(constant)
            else:
                constants.append(constant)
        names |= {*code_object.co_names}
        yield code_object.co_code
        yield (code_object.co_names, code_object.co_varnames)
        yield constants
    for name in sorted(names & set(function.__globals__)):
        yield (name, function.__globals__[name])


def _name(value: Any) -> str | None:
    """Qualified name of an installed function, or of an object such as SciPy's norm."""
    if hasattr(value, "__name__") and callable(value) and _installed(value):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    home = type(value).__module__
    members = vars(sys.modules[home]) if home in sys.modules and _installed(type(value)) else {}
    return next((f"{home}.{name}" for name, member in members.items() if member is value), None)
