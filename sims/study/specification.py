"""Problems as data: their schema, and their arrays.

The choices for designs, targets, frames, kernels and queries, and their fields, are read off the
registries of :mod:`sims.problem`, so a new entry there is at once allowed in every file.
"""

import inspect
from collections.abc import Mapping
from contextlib import suppress
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import (
    AfterValidator,
    BaseModel,
    Discriminator,
    Field,
    Tag,
    create_model,
)

from sims.base.errors import InputError
from sims.base.runtime import memory
from sims.base.validation import Strict
from sims.problem import (
    DESIGNS,
    FRAMES,
    KERNELS,
    QUERIES,
    SEQUENCES,
    TARGETS,
    Design,
    Heads,
    Kernel,
    Task,
    redundant_views,
)
from sims.study import python_parts
from sims.study.python_parts import PythonChoice
from sims.weights import FACTORIES, WeightRule


class _Choice(Strict, use_attribute_docstrings=False):
    """An entry of a registry: it has no source, for which pydantic would search long."""


def _union(
    registry: Mapping[str, Any], label: str, size_names: tuple[str, ...], *models: Any
) -> Any:
    """A union of models with a ``kind`` each: one per entry, with fields from its signature."""
    members = []
    for kind, factory in registry.items():
        fields: dict[str, Any] = {"kind": (Literal[kind], ...)}
        for name, parameter in inspect.signature(factory).parameters.items():
            if name in size_names:
                continue
            required = parameter.default is inspect.Parameter.empty
            fields[name] = (_in_files(parameter.annotation), ... if required else parameter.default)
        members.append(create_model(f"{label}_{kind}", __base__=_Choice, **fields))
    return Annotated[reduce(or_, [*members, *models]), Field(discriminator="kind")]


def _in_files(annotation: Any) -> Any:
    """Type of a factory's argument in a file; arrays are checked by the factory."""
    arrays = (inspect.Parameter.empty, ArrayLike, ArrayLike | None)
    return Annotated[Any, AfterValidator(_numbers)] if annotation in arrays else annotation


def _numbers(value: Any) -> Any:
    """The value, if it is a number, a list of such, or nothing."""
    kind = "O"
    with suppress(ValueError):  # lists of different lengths
        kind = np.asarray(value).dtype.kind
    if value is not None and kind not in "iuf":
        raise ValueError("a number, or lists of numbers")
    return value


def _arguments(choice: BaseModel) -> dict[str, Any]:
    return {name: getattr(choice, name) for name in type(choice).model_fields if name != "kind"}


def _build_choice(registry: Mapping[str, Any], choice: Any, from_python: Any, **sizes: int) -> Any:
    """Part of a problem from a choice, by the registry or a Python file."""
    if isinstance(choice, PythonChoice):
        return from_python(choice, **sizes)
    factory = registry[choice.kind]
    parameters = inspect.signature(factory).parameters
    accepted = {name: value for name, value in sizes.items() if name in parameters}
    return factory(**accepted, **_arguments(choice))


def _kernel_or_rule(choice: Any) -> str:
    """Where the name of a kernel or rule is known, in whatever form: errors tell the right form."""
    if isinstance(choice, Mapping):
        return "kernel" if str(choice.get("kind")) in KERNELS else "rule"
    return "rule" if isinstance(choice, BaseModel) or str(choice) in FACTORIES else "kernel"


def _redundant_views(noise: float, correlation: float = 0.0) -> None:
    """Signature of :func:`sims.problem.redundant_views`, which makes design and frames together."""


if TYPE_CHECKING:  # the unions exist only at run time
    DesignChoice = Any
    TargetChoice = Any
    FramesChoice = Any
    QueriesChoice = Any
    KernelChoice = Any
else:
    DesignChoice = _union(
        {**DESIGNS, **SEQUENCES, "redundant_views": _redundant_views},
        "Design",
        ("dimension",),
        PythonChoice,
    )
    TargetChoice = _union(TARGETS, "Target", ("dimension",), PythonChoice)
    FramesChoice = _union(FRAMES, "Frames", ("dimension", "count", "width"))
    QueriesChoice = _union(QUERIES, "Queries", ("dimension",))
    KernelChoice = Annotated[
        Annotated[Literal[tuple(KERNELS)], Tag("kernel")]
        | Annotated[_union(FACTORIES, "Rule", (), PythonChoice), Tag("rule")],
        Discriminator(_kernel_or_rule),
    ]


KEYS_APART = 2**62
"""Bit flipped in the seed of key frames: drawn apart from the frames of queries of equal seed."""


class HeadsSpec(Strict):
    """The heads: H frames of width d_k, a kernel or weight rule, one bandwidth or one a head."""

    count: int = Field(ge=1)
    """H, number of heads."""
    width: int = Field(ge=1)
    """d_k, dimension of a head."""
    frames: FramesChoice | None = None
    """Subspaces; required unless design.kind is redundant_views."""
    # Omitted from hashes, so that problems without them keep their names.
    key_frames: FramesChoice | None = Field(default=None, exclude_if=lambda value: value is None)
    """Frames that project keys (W_K), drawn separately from queries' (W_Q); default: `frames`."""
    kernel: KernelChoice = "gaussian"
    """Name of a kernel, or a weight rule with its options."""
    bandwidth: float | list[float]
    """b > 0; softmax and weight rules: temperature b²."""

    def rule(self) -> str | Kernel | WeightRule:
        """The kernel's name, or the kernel or weight rule made."""
        if isinstance(self.kernel, str):
            return self.kernel
        return _build_choice(FACTORIES, self.kernel, python_parts.kernel)


def gibibytes(count: float) -> str:
    """Bytes as text, in GiB."""
    return f"{count / 2**30:,.3f} GiB"


def check_fits(size: int) -> None:
    """Raise InputError if a number of bytes exceeds the machine's memory."""
    if size > memory():
        request = f"about {gibibytes(size)} of results and working memory"
        raise InputError("problem", request, f"{gibibytes(memory())} (memory of this machine)")


class Problem(NamedTuple):
    """The problem, for theory and simulation."""

    task: Task
    heads: Heads
    n: int
    queries: Any

    def __repr__(self) -> str:
        return f"Problem({self.task!r}, {self.heads!r}, n {self.n}, {len(self.queries)} queries)"


class ProblemSpec(Strict):
    """A problem as data.

    With ``design.kind: redundant_views``, ``dimension`` is the latent dimension r; the ambient
    dimension is then r + H·d_k, the target is a function of the latent coordinates, and queries
    have ξ = 0.
    """

    dimension: int = Field(ge=1)
    """d, dimension of the keys."""
    design: DesignChoice
    """Distribution of the keys."""
    target: TargetChoice
    """Regression function m."""
    noise_sd: float = Field(ge=0)
    """σ."""
    heads: HeadsSpec
    n: int = Field(ge=1)
    """Number of keys."""
    queries: QueriesChoice

    def footprint(self) -> int:
        """Bytes that :meth:`build` and one batch of results take at a time, about.

        An array counts as often as it is copied on the way.
        """
        count, width, queries = self.heads.count, self.heads.width, self.queries.count
        dimension, target = self.dimension, self.target
        terms = max(getattr(target, "features", 1), getattr(target, "levels", 0) + 1)
        terms *= dimension if target.kind == "additive" else 1
        if self.design.kind == "redundant_views":
            dimension += count * width
        frames = 4 * count * dimension * max(width, 64)
        return 8 * (
            10 * dimension**2
            + frames
            + 3 * dimension * (terms + queries)
            + 4 * (width + 3 * queries) * count**2
        )

    def build(self) -> Problem:
        """The arrays.

        Raises:
            InputError: they do not fit into memory, the parts do not fit together, or a value is
                out of its range.
        """
        check_fits(self.footprint())
        try:
            with np.errstate(all="ignore"):  # what is not finite is refused where it ends up
                return self._build()
        except TypeError as error:
            # A list where a number is expected and the like, seen only when arrays are made.
            allowed = "numbers and lists as `sims schema` describes"
            raise InputError("problem", str(error), allowed) from None

    def _build(self) -> Problem:
        heads, design, target = self.heads, self.design, self.target
        law: Design
        queries: Any = QUERIES[self.queries.kind](self.dimension, **_arguments(self.queries))
        m = _build_choice(TARGETS, target, python_parts.target, dimension=self.dimension)
        if design.kind == "redundant_views":
            for name in ("frames", "key_frames"):
                if (choice := getattr(heads, name)) is not None:
                    raise InputError(f"heads.{name}", choice.kind, "nothing (views set the frames)")
            law, frames = redundant_views(
                self.dimension, heads.count, heads.width, **_arguments(design)
            )
            padding = law.dimension - self.dimension
            m = m.padded(padding)
            queries = np.pad(np.asarray(queries), ((0, 0), (0, padding)))
        else:
            if heads.frames is None:
                raise InputError("heads.frames", None, ", ".join(FRAMES))
            law = _build_choice(
                {**DESIGNS, **SEQUENCES}, design, python_parts.design, dimension=self.dimension
            )
            if law.dimension != self.dimension:
                raise InputError("design.dimension", law.dimension, f"{self.dimension}")
            frames = self._frames(heads.frames)
        key_frames = (
            None if heads.key_frames is None else self._frames(heads.key_frames, KEYS_APART)
        )
        ensemble = Heads(frames, heads.rule(), heads.bandwidth, key_frames)
        return Problem(Task(law, m, self.noise_sd), ensemble, self.n, queries)

    def _frames(self, choice: Any, seed_mask: int = 0) -> Any:
        """The frames of a choice, its seed with the bits ``seed_mask`` flipped."""
        arguments = _arguments(choice)
        if isinstance(arguments.get("seed"), int):
            arguments["seed"] ^= seed_mask
        return FRAMES[choice.kind](self.dimension, self.heads.count, self.heads.width, **arguments)
