"""Docstrings and signatures, before and after napoleon reads them: what it would mistake."""

import functools
import re
import sys

import jax.numpy as jnp
from jax.typing import DTypeLike
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

LONG = {
    stringify_annotation(ArrayLike, "smart"): "ArrayLike",
    stringify_annotation(DTypeLike, "smart"): "DTypeLike",
    repr(jnp.float32): "float32",
    repr(jnp.float64): "float64",
}
"""Unions and values as Sphinx spells them out, to the names that the code has for them."""
MODULES = re.compile(r"~?\b(?:jaxlib\._jax|jax|numpy|xarray\.core\.\w+|sims(?:\.\w+)+)\.(?=[A-Z])")
LETTER = re.compile(r"^(\s*\w+): (\w)\.(?=\s|$)")
COLON = "\N{RATIO}"
"""Stands for a colon where napoleon would take what is before it for a type."""


def before(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """ "dimension: d." is no list that begins with d, and an attribute's sentence has no type."""
    lines[:] = [LETTER.sub(r"\1: \2\\.", line) for line in lines]
    if what in ("attribute", "data", "property") and lines:
        lines[0] = lines[0].replace(": ", f"{COLON} ")


def after(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    lines[:] = [line.replace(f"{COLON} ", ": ") for line in lines]


def signature(
    app: Sphinx, what: str, name: str, obj: object, options: object, arguments: str, result: str
) -> tuple[str, str]:
    """With the short names that the code has."""

    def short(text: str) -> str:
        for long, name in LONG.items():
            text = text.replace(long, name)
        return MODULES.sub("", text)

    return arguments and short(arguments), result and short(result)


def source_of(app: Sphinx, module: str, name: str) -> str | None:
    """A plain value has no source of its own: else a page "builtins" would be linked to."""
    try:
        value = functools.reduce(getattr, name.split("."), sys.modules[module])
    except (AttributeError, KeyError):
        return None
    return module if getattr(value, "__module__", None) == "builtins" else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", before, priority=400)  # napoleon: 500
    app.connect("autodoc-process-docstring", after, priority=600)
    app.connect("autodoc-process-signature", signature)
    app.connect("viewcode-follow-imported", source_of)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
