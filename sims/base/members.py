"""Members of a value, by which it is identified: see :mod:`sims.base.identity`.

A user's function has its byte code, constants, defaults, closure and attributes, and all of the
user's code and data that it names: functions, classes with their attributes and bases, objects, and
modules, those imported inside it, too. Functions and classes of this package and of installed ones
have their name and bound values, since a run's provenance has their versions. Any other object has
the parts from which Python would copy it; what has none (a lock, an open file) is refused.
"""

import builtins
import copyreg
import dataclasses
import dis
import functools
import importlib
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from sims.base.errors import InputError
from sims.base.places import CARRIED

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


def installed(value: object) -> bool:
    """True for an object whose module is known by name; a script's is not."""
    module = sys.modules.get(getattr(value, "__module__", None) or "builtins")
    is_script = module is sys.modules["__main__"]
    return not is_script and _is_known(module)


@functools.singledispatch
def members(value: Any) -> Iterator[Any]:
    """Members of a value, each of which is a value in turn.

    Raises:
        InputError: nothing identifies the value.
    """
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value)]
        yield type(value)
        yield [(name, getattr(value, name, None)) for name in fields]
        yield from _further(value, fields)
    elif (qualified := _name(value)) is not None:
        yield f"installed {qualified}"
    elif callable(inner := getattr(value, "__wrapped__", None)):  # a jitted function, a cached one
        yield inner
    elif not installed(type(value)):
        yield (type(value), _lasting(value, object.__getstate__(value)))  # whatever it pickles
    else:
        yield _copied(value)


def _further(value: Any, known: Iterable[str] = ()) -> Iterator[Any]:
    """The attributes of an object but those known, if it has any."""
    attributes = _lasting(value, getattr(value, "__dict__", {}))
    if further := {name: item for name, item in attributes.items() if name not in known}:
        yield further


def _lasting(value: Any, attributes: Any) -> Any:
    """Attributes of an object, without what its cached properties keep."""
    if not isinstance(attributes, dict):
        return attributes
    lasting = dict(attributes)
    for name in cached_names(value):
        lasting.pop(name, None)
    return lasting


def cached_names(value: object) -> Iterator[str]:
    """Names of an object's cached properties."""
    for kind in type(value).__mro__:
        for name, member in vars(kind).items():
            if isinstance(member, functools.cached_property):
                yield name


def _copied(value: Any) -> list[Any]:
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
    # An iterator over its items would be copied as one that knows only the object.
    return [[*part] if isinstance(part, Iterator) else _lasting(value, part) for part in parts]


@members.register(np.ndarray)
def _members_of_array(value: np.ndarray) -> Iterator[Any]:
    yield (value.tolist(), np.ma.getmaskarray(value))


@members.register(Mapping)
def _members_of_mapping(value: Mapping[Any, Any]) -> Iterator[Any]:
    yield from sorted(value.items(), key=lambda item: repr(item[0]))
    yield from _own_container(value)


@members.register(list)
@members.register(tuple)
def _members_of_sequence(value: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    yield f"{type(value).__name__} {len(value)}"
    yield from value
    yield from _own_container(value)


def _own_container(value: Any) -> Iterator[Any]:
    """Class and attributes of a container of a user's class."""
    if not installed(type(value)):
        yield type(value)
        yield from _further(value)


@members.register(types.ModuleType)
def _members_of_module(value: types.ModuleType) -> Iterator[Any]:
    yield f"module {value.__name__}"
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
    members.register(_kind, functools.partial(_members_by_name, attrgetter(*_names)))


@members.register(types.MemberDescriptorType)
@members.register(types.GetSetDescriptorType)
def _members_of_slot(value: Any) -> Iterator[str]:
    yield f"slot {value.__name__}"


@members.register(types.BuiltinFunctionType)
@members.register(types.MethodWrapperType)
def _members_of_builtin(value: Any) -> Iterator[Any]:
    yield f"installed {value.__qualname__}"
    owner = value.__self__
    if owner is not None and not isinstance(owner, types.ModuleType):
        yield owner


@members.register(type)
def _members_of_class(value: type) -> Iterator[Any]:
    if installed(value):
        yield f"class {value.__module__}.{value.__qualname__}"
        return
    # Not the module's name, which says where the code stands and not what it is.
    yield f"class {value.__qualname__}"
    yield value.__bases__
    for name, member in sorted(vars(value).items()):
        is_data = not callable(member) and not hasattr(member, "__func__")
        of_python = name.startswith("__") and name.endswith("__") and is_data
        if not (of_python or name in _SKIPPED or name.startswith("_abc_")):
            yield (name, member)


@members.register(types.FunctionType)
def _function(function: types.FunctionType) -> Iterator[Any]:
    code = function.__code__
    yield f"function {function.__qualname__}"
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
    if hasattr(value, "__name__") and callable(value) and installed(value) and _resolves(value):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    if isinstance(value, np.ufunc):
        homes = [module for module in [*sys.modules.values()] if _holds(module, value)]
        return min((f"{module.__name__}.{value.__name__}" for module in homes), default=None)
    home = type(value).__module__
    members = vars(sys.modules[home]) if home in sys.modules and installed(type(value)) else {}
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
