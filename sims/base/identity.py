"""Digests of the inputs of a result: arrays by their values, functions by their code.

Functions with the same name can differ. A user's function is identified by its byte code,
constants, defaults, closure and attributes, and by all of the user's code and data that it names:
functions, classes with their attributes and bases, objects, and modules, those imported inside it,
too. Functions and classes of this package and of installed ones are identified by name and bound
values, since a run's provenance has their versions. Any other object is identified by the parts
from which Python would copy it; what has none (a lock, an open file) is refused in one line.

A compiled program holds what a function read when it was traced. :func:`edition` counts how often
code or data behind a known function has changed, so that programs can be dropped in time.
"""

import builtins
import copyreg
import dataclasses
import dis
import functools
import hashlib
import importlib
import os
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from operator import attrgetter
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


_SKIPPED = ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__")
"""Attributes of a class without influence on what it computes."""
_known: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()
"""A user's function or object to the digest that it had when it was last met."""
_changes: list[str] = []
"""Digests of functions and objects that had another digest before."""


def digest(*values: object) -> str:
    """Sixteen hexadecimal digits that identify the values.

    Args:
        values: numbers, text, arrays (NumPy's or JAX's), containers, dataclasses and pytree
            modules, functions, ``functools.partial``, classes, and objects that can be copied.

    Raises:
        InputError: a value cannot be identified.
    """
    return _combine(_parts(values, frozenset(), _encode_exact, True))


def rounded_digest(*values: object) -> str:
    """Digest with numbers to six digits, so that machines that round differently agree.

    An array of floating-point numbers enters by two weighted sums of the sizes of its entries, a
    class by its name: values count, but not code.
    """
    return _combine(_parts(values, frozenset(), _encode_rounded, False))


def edition() -> int:
    """Number of times that a digested function or object had another digest before."""
    return len(_changes)


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


def _is_known(module: object) -> bool:
    return known_by_name(getattr(module, "__file__", None))


@functools.cache
def _real(file: str) -> str:
    """Path without links: an environment may lie behind one."""
    return file if file.startswith("<") else os.path.realpath(file)


def _installed(value: object) -> bool:
    module = sys.modules.get(getattr(value, "__module__", None) or "builtins")
    is_script = module is sys.modules["__main__"]
    return not is_script and _is_known(module)


def _parts(
    value: Any, seen: frozenset[int], encode: Callable[[Any], bytes], watched: bool
) -> Iterator[bytes]:
    """Parts of a value; ``encode`` encodes numbers, text and arrays.

    Args:
        value: the value.
        seen: identities of the objects that it is a part of.
        encode: exact or rounded.
        watched: whether a user's function is compared with what it was when last met. Of those
            inside it only compiled ones are: the parts of others may end where a cycle closes.
    """
    if _is_array(value) or (isinstance(value, _PLAIN) and not isinstance(value, Enum)):
        yield encode(value)
        return
    if isinstance(value, type) and encode is _encode_rounded:
        yield f"class {value.__qualname__}".encode()
        return
    if isinstance(value, set | frozenset):
        yield from sorted(b"".join(_parts(item, seen, encode, watched)) for item in value)
        return
    if id(value) in seen:
        yield b"seen before"
        return
    inside = seen | {id(value)}
    kept = encode is _encode_exact and _is_compiled(value)
    if (watched or kept) and _is_own(value):
        yield _watch(value, _combine(_parts_of_members(value, inside, encode, False)))
    else:
        yield from _parts_of_members(value, inside, encode, watched)


def _parts_of_members(
    value: Any, seen: frozenset[int], encode: Callable[[Any], bytes], watched: bool
) -> Iterator[bytes]:
    for part in _members(value):
        yield from [part] if isinstance(part, bytes) else _parts(part, seen, encode, watched)


def _is_array(value: Any) -> bool:
    """True for an array of numbers of NumPy or JAX, without further content."""
    if isinstance(value, np.ndarray | np.generic):
        return type(value) is not np.ma.MaskedArray and not value.dtype.hasobject
    shaped = hasattr(value, "__array__") and hasattr(value, "dtype")
    return shaped and not isinstance(value, type) and type(value).__module__.startswith("jax")


def _is_own(value: Any) -> bool:
    """True for a user's function, for what wraps one, and for an object of a user's class."""
    if isinstance(value, types.FunctionType):
        return not known_by_name(value.__code__.co_filename)
    if isinstance(value, types.ModuleType | types.MethodType):
        return False
    if _is_compiled(value):
        return _is_own(value.__wrapped__)
    return not _installed(value if isinstance(value, type) else type(value))


def _is_compiled(value: Any) -> bool:
    """True for what wraps a function to keep programs or values of it."""
    is_function = isinstance(value, types.FunctionType | type)
    return not is_function and isinstance(getattr(value, "__wrapped__", None), types.FunctionType)


def _watch(value: Any, now: str) -> bytes:
    """The digest of a function or object, after a comparison with its last one."""
    with suppress(TypeError):  # without a hash or weak reference: no program is kept for it
        if _known.get(value, now) != now:
            _changes.append(now)
        _known[value] = now
    return now.encode()


@functools.singledispatch
def _members(value: Any) -> Iterator[Any]:
    """Members of a value; bytes are of the value itself, other members are digested in turn."""
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value)]
        yield type(value)
        yield [(name, getattr(value, name, None)) for name in fields]
        yield from _further(value, fields)
    elif (qualified := _name(value)) is not None:
        yield f"installed {qualified}".encode()
    elif callable(inner := getattr(value, "__wrapped__", None)):  # a jitted function, a cached one
        yield inner
    elif hasattr(value, "__dict__") and not _installed(type(value)):
        yield (type(value), _state(value))
    else:
        parts = _copied(value)
        yield parts if _copies_itself(value) else (type(value), _state(value))


def _further(value: Any, known: Iterable[str] = ()) -> Iterator[Any]:
    """The attributes of an object but those known, if it has any."""
    if further := {name: item for name, item in _state(value).items() if name not in known}:
        yield further


def _state(value: Any) -> dict[str, Any]:
    """Attributes of an object, without what its cached properties keep."""
    state = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with suppress(AttributeError):
                state[name] = getattr(value, name)
        for name, member in vars(kind).items():
            if isinstance(member, functools.cached_property):
                state.pop(name, None)
    state.pop("__weakref__", None)
    state.pop("__dict__", None)
    return state


def _copies_itself(value: Any) -> bool:
    """True for an object whose class, or its module, says how it is copied."""
    methods = ("__reduce_ex__", "__reduce__", "__getstate__")
    if type(value) in copyreg.dispatch_table or not hasattr(value, "__dict__"):
        return True
    return any(getattr(type(value), name) is not getattr(object, name) for name in methods)


def _copied(value: Any) -> tuple[Any, ...]:
    """The parts from which Python copies an object.

    Raises:
        InputError: it cannot be copied.
    """
    copy = copyreg.dispatch_table.get(type(value), lambda item: item.__reduce_ex__(4))
    parts = None
    with suppress(TypeError):
        parts = copy(value)
    if not isinstance(parts, tuple):  # or only a name, which may be another's, too
        allowed = "functions, arrays, numbers and text: a result must be known by what made it"
        raise InputError("identity", type(value).__name__, allowed)
    return parts


@_members.register(np.ndarray)
def _members_of_array(value: np.ndarray) -> Iterator[Any]:
    yield (value.tolist(), np.ma.getmaskarray(value))


@_members.register(Mapping)
def _members_of_mapping(value: Mapping[Any, Any]) -> Iterator[Any]:
    yield from sorted(value.items(), key=lambda item: repr(item[0]))
    yield from _own_container(value)


@_members.register(list)
@_members.register(tuple)
def _members_of_sequence(value: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    yield f"{type(value).__name__} {len(value)}".encode()
    yield from value
    yield from _own_container(value)


def _own_container(value: Any) -> Iterator[Any]:
    """Class and attributes of a container of a user's class."""
    if not _installed(type(value)):
        yield type(value)
        yield from _further(value)


@_members.register(types.ModuleType)
def _members_of_module(value: types.ModuleType) -> Iterator[bytes]:
    yield f"module {value.__name__}".encode()
    if not _is_known(value):
        yield Path(str(value.__file__)).read_bytes()


_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    Enum: ("__class__", "name", "value"),
    functools.partial: ("func", "args", "keywords"),
    functools.cached_property: ("func",),
    types.MethodType: ("__func__", "__self__"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
}
"""Kind of a value to the attributes that say all of it."""


def _members_by_name(attributes: Callable[[Any], Any], value: Any) -> Iterator[Any]:
    yield attributes(value)


for _kind, _names in _ATTRIBUTES.items():
    _members.register(_kind, functools.partial(_members_by_name, attrgetter(*_names)))


@_members.register(types.MemberDescriptorType)
@_members.register(types.GetSetDescriptorType)
def _members_of_slot(value: Any) -> Iterator[bytes]:
    yield f"slot {value.__name__}".encode()


@_members.register(types.BuiltinFunctionType)
@_members.register(types.MethodWrapperType)
def _members_of_builtin(value: Any) -> Iterator[Any]:
    yield f"installed {value.__qualname__}".encode()
    owner = value.__self__
    if owner is not None and not isinstance(owner, types.ModuleType):
        yield owner


@_members.register(type)
def _members_of_class(value: type) -> Iterator[Any]:
    installed = _installed(value)
    # Not the module's name of one's own, which says where the code stands and not what it is.
    yield f"class {value.__module__ if installed else ''}.{value.__qualname__}".encode()
    if installed:
        return
    yield value.__bases__
    for name, member in sorted(vars(value).items()):
        is_data = not callable(member) and not hasattr(member, "__func__")
        of_python = name.startswith("__") and name.endswith("__") and is_data
        if not (of_python or name in _SKIPPED or name.startswith("_abc_")):
            yield (name, member)


@_members.register(types.FunctionType)
def _function(function: types.FunctionType) -> Iterator[Any]:
    code = function.__code__
    yield f"function {function.__qualname__}".encode()
    cells = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a name that is not yet bound
            cells.append(cell.cell_contents)
    bound = (function.__defaults__, function.__kwdefaults__, code.co_freevars, cells)
    if known_by_name(code.co_filename):
        yield function.__module__
        # What a factory bound tells its functions apart.
        if _real(code.co_filename).startswith(_INSTALLED[1]) or not _resolves(function):
            yield bound
        return
    yield bound
    yield from _further(function, ("__wrapped__",))
    yield from _code(code, function.__globals__)


def _code(outer: types.CodeType, known: Mapping[str, Any]) -> Iterator[Any]:
    """Byte code of a function, and what it names in its module and in the modules it imports."""
    names: set[str] = set()
    codes = [outer]
    while codes:
        code = codes.pop()
        constants: list[object] = []
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                codes.append(constant)
            else:
                constants.append(constant)
        names |= {*code.co_names}
        yield code.co_code
        yield (code.co_names, code.co_varnames)
        yield constants
        for module in _imported(code, known):
            yield from _used(module, names)
    yield from _named(known, names)


def _imported(code: types.CodeType, known: Mapping[str, Any]) -> Iterator[types.ModuleType]:
    """Modules of the user that a function's own import statements name."""
    instructions = list(dis.get_instructions(code))
    for place, instruction in enumerate(instructions):
        if instruction.opname == "IMPORT_NAME":
            level = instructions[place - 2].argval
            with suppress(ImportError, TypeError, KeyError):  # as the call will say
                name = "." * level + str(instruction.argval)
                module = importlib.import_module(name, known.get("__package__"))
                if not _is_known(module):
                    yield module


def _used(
    module: types.ModuleType, names: set[str], seen: frozenset[int] = frozenset()
) -> Iterator[Any]:
    """A user's module, and what it holds under the names that a function uses."""
    if id(module) in seen or _is_known(module):
        return
    yield module
    yield from _named(vars(module), names, seen | {id(module)})


def _named(
    held: Mapping[str, Any], names: set[str], seen: frozenset[int] = frozenset()
) -> Iterator[Any]:
    """What a module holds under the names that a function uses, and of modules what they hold."""
    for name in sorted(names & {*held}):
        yield (name, held[name])
        if isinstance(held[name], types.ModuleType):
            yield from _used(held[name], names, seen)


def _name(value: Any) -> str | None:
    """Qualified name of an installed function, or of an object such as SciPy's norm."""
    if hasattr(value, "__name__") and callable(value) and _installed(value) and _resolves(value):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, np.ufunc):
        homes = [module for module in [*sys.modules.values()] if _holds(module, value)]
        return min((f"{module.__name__}.{value.__name__}" for module in homes), default=None)
    home = type(value).__module__
    members = vars(sys.modules[home]) if home in sys.modules and _installed(type(value)) else {}
    return next((f"{home}.{name}" for name, member in members.items() if member is value), None)


def _holds(module: types.ModuleType, value: Any) -> bool:
    """True if an installed module has an object under its name."""
    found = getattr(module, "__dict__", {}).get(value.__name__)
    return found is value and _is_known(module)


def _resolves(value: Any) -> bool:
    """True if an installed object is found under its name, rather than made by a call."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "builtins", builtins)
    for name in getattr(value, "__qualname__", value.__name__).split("."):
        found = getattr(found, name, None)
    while found is not None and found is not value:
        found = getattr(found, "__wrapped__", None)
    return found is value
