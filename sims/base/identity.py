"""Digests of the inputs of a result: arrays by their values, functions by their code.

Functions with the same name can differ: :mod:`sims.base.members` says what identifies a value.

A compiled program holds what a function read when it was traced. :func:`edition` counts how often
code or data behind a known function has changed, so that programs can be dropped in time.
"""

import hashlib
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from typing import Any

import numpy as np

from sims.base.members import installed, known_by_name, members

_PLAIN = bool | int | float | complex | str | bytes | np.dtype | None | types.EllipsisType
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
    return combined_digest(*_parts(values, frozenset(), _encode_exact, True))


def rounded_digest(*values: object) -> str:
    """Digest with numbers to six digits, so that machines that round differently agree.

    An array of floating-point numbers enters by two weighted sums of the sizes of its entries, a
    class by its name: values count, but not code.
    """
    return combined_digest(*_parts(values, frozenset(), _encode_rounded, False))


def edition() -> int:
    """Number of times that a digested function or object had another digest before."""
    return len(_changes)


def combined_digest(*parts: str | bytes) -> str:
    """Sixteen hexadecimal digits of texts or bytes in their order."""
    combined = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        combined.update(hashlib.sha256(content).digest())
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
    kept = encode is _encode_exact and _is_compiled(value)
    is_watched = (watched or kept) and _is_own(value)
    parts: list[bytes] = []
    for member in members(value):
        parts += _parts(member, seen | {id(value)}, encode, watched and not is_watched)
    yield from [_watch(value, combined_digest(*parts))] if is_watched else parts


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
    return not installed(value if isinstance(value, type) else type(value))


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
