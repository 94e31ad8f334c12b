"""``sims advise``: tables and sentences of :mod:`sims.advise`, or JSON."""

import json as formats
import math
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from sims.advise import (
    ContextAdvice,
    DataAdvice,
    SplitAdvice,
    advise_context,
    advise_data,
    advise_split,
    read_context,
    read_data,
    rests_on,
)
from sims.base.errors import InputError
from sims.cli.listing import after_result, print_table
from sims.theory import FEW_KEYS

OPTIONS = {
    "data": ("target", "groups", "seed"),
    "n": ("budget", "noise", "smoothness", "rule"),
    "context": ("rule",),
}
"""Options of each kind of advice, by the option that requests it."""


def advise(options: dict[str, Any], json: bool) -> None:
    """Print the advice that the options request.

    Args:
        options: option to value, for the options given.
        json: print JSON.

    Raises:
        InputError: none or two kinds of advice are requested, or an option belongs to another kind.
    """
    kind = _check_options(options)
    advice: Any
    if kind == "data":
        path = options.pop("data")
        columns = [options.pop("target", None), options.pop("groups", None)]
        advice = advise_data(read_data(path, *columns), **options, progress=sys.stderr.isatty())
    elif kind == "n":
        advice = advise_split(**options)
    else:
        advice = advise_context(*read_context(options.pop("context")), **options)
    if json:
        _print_json(advice, kind)
        return
    PRINTERS[kind](advice)
    if kind == "data":
        source = ", ".join(repr(str(part)) for part in (path, *columns) if part is not None)
        print(*_write_code(advice, source), sep="\n")
    with after_result("published answers"):
        for rests in rests_on(kind):
            print(f"Rests on: {rests.question} [{rests.experiment}: {rests.id}] {rests.answer}.")


def _check_options(options: dict[str, Any]) -> str:
    """Kind of advice that the options request.

    Raises:
        InputError: none or two kinds are requested; an option is missing or belongs to another.
    """
    kinds = [kind for kind in OPTIONS if kind in options]
    if len(kinds) != 1:
        request = " and ".join(f"--{kind}" for kind in kinds) or "none"
        raise InputError("advise", request, "one of --data FILE, --n N, --context SHORT:LONG")
    (kind,) = kinds
    for name in options.keys() - {kind, *OPTIONS[kind]}:
        allowed = ", ".join(f"--{name}" for name in OPTIONS[kind])
        raise InputError(f"--{name}", options[name], f"with --{kind}: {allowed}")
    for name in ("budget", "noise"):
        if kind == "n" and name not in options:
            raise InputError("--n", f"needs --{name}")
    return kind


def _print_json(advice: Any, kind: str) -> None:
    rests = []
    with after_result("published answers"):
        rests = [asdict(answer) for answer in rests_on(kind)]
    document = {
        "advice": [asdict(split) for split in advice] if kind == "n" else asdict(advice),
        "said": [] if kind == "n" else advice.sentences(),
        "rests_on": rests,
    }
    text = formats.dumps(document, default=_listed)
    # NaN, which JSON does not have, becomes null.
    plain = formats.loads(text, parse_constant=lambda _: None)
    print(formats.dumps(plain, indent=1, ensure_ascii=False))


def _listed(value: xr.Dataset | np.ndarray) -> Any:
    return value.to_dict() if isinstance(value, xr.Dataset) else value.tolist()


def _table(name: str, frame: pd.DataFrame) -> None:
    def text(value: Any) -> str:
        if isinstance(value, tuple):
            low, high = value
            return f"{low:.3g} to {high:.3g}" if low > 0 else f"at most {high:.3g}"
        if not isinstance(value, float):
            return str(value)
        return (f"{value:.3g}" if value < 1000 else "> 1000") if math.isfinite(value) else "–"

    rows = []
    for row, values in zip(frame.index, frame.to_numpy(object), strict=True):
        rows.append((str(row), *map(text, values)))
    print_table((name, *map(str, frame.columns)), rows, numbers=True)


def _data(advice: DataAdvice) -> None:
    rows, columns, outputs = advice.size
    print(f"{rows:,} rows, {columns} features, {outputs} outputs. Mean squared errors of")
    print("held-out outputs with variance 1; ± standard error. Frames are random, not learned.")
    lines = pd.DataFrame([vars(row) for row in (*advice.rows, *advice.diversity)])
    lines.columns = pd.Index(["method", "error", "±", "minus best", "±", "heads"])
    _table("method", lines.fillna({"heads": "–"}).set_index("method"))
    parts = pd.DataFrame({name: vars(part) for name, part in advice.parts.items()})
    _table("estimated part", parts.drop("dependent"))
    print(*filter(None, [advice.alarm]), *advice.notes, *advice.sentences(), sep="\n")


def _write_code(advice: DataAdvice, source: str) -> list[str]:
    """Lines of Python that fit the best heads to the file."""
    options = [f"{name}={value!r}" for name, value in advice.regressor().get_params().items()]
    return [
        "In Python, with the frames of the first of 16 draws, then heads.predict(rows):",
        "from sims.advise import HeadsRegressor, read_data",
        f"data = read_data({source})",
        f"heads = HeadsRegressor({', '.join(options)}).fit(data.inputs, data.targets)",
    ]


def _split(splits: list[SplitAdvice]) -> None:
    lines = pd.DataFrame([vars(split.best) for split in splits], [split.decay for split in splits])
    for split in splits:
        close = [f"{near.heads} × {near.width}" for near in split.close]
        lines.loc[split.decay, "within 5 %: H × d_k"] = ", ".join(close)
    _table("decay of relevance", lines.rename(columns={"heads": "H*", "width": "d_k*"}))
    if not lines["in_range"].all():
        print(
            f"in_range False: theory ({FEW_KEYS} effective keys or more) limits the bandwidth; "
            "the split may change with a smaller one."
        )
    print("First order in 1/n: heads share a view of 64 coordinates, with independent noise.")


def _context(advice: ContextAdvice) -> None:
    print(f"Kept from {advice.short:,} to {advice.long:,} keys: error relative to re-tuning, to")
    print("leading order, β = 2, by the dimension d that the keys of a head fill:")
    cost = advice.costs["cost"].sel(smoothness=2.0).transpose("rule", "dimension")
    widths = [f"d = {d}" for d in cost["dimension"].values]
    _table("rule", pd.DataFrame(cost.values, cost["rule"].values, widths))
    print("Scores are distances, or dot products with keys of equal norm.")
    print(*advice.sentences(), sep="\n")


PRINTERS: dict[str, Callable[[Any], None]] = {"data": _data, "n": _split, "context": _context}
"""Function that prints each kind of advice."""
