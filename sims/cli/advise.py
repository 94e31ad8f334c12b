"""``sims advise``: tables and sentences of :mod:`sims.advise`, or JSON."""

import json as formats
import math
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
from sims.advise.context import HALF
from sims.cli.listing import print_table
from sims.errors import InputError
from sims.theory import FEW_KEYS

OPTIONS = {
    "data": ("target", "groups", "seed"),
    "n": ("budget", "noise", "smoothness", "rule"),
    "context": ("rule", "noise"),
}
"""What each kind of advice takes, by the option that asks for it."""


def advise(given: dict[str, Any], json: bool) -> None:
    """Print the advice that the options ask for.

    Args:
        given: option to value, without those that are not given.
        json: whether as JSON.

    Raises:
        InputError: no kind of advice is asked for, or two, or an option belongs to another.
    """
    kinds = [kind for kind in OPTIONS if kind in given]
    if len(kinds) != 1:
        got = " and ".join(f"--{kind}" for kind in kinds) or "none"
        raise InputError("advise", got, "one of --data FILE, --n N, --context SHORT:LONG")
    (kind,) = kinds
    for name in given.keys() - {kind, *OPTIONS[kind]}:
        allowed = ", ".join(f"--{one}" for one in OPTIONS[kind])
        raise InputError(f"--{name}", given[name], f"with --{kind}: {allowed}")
    advice: Any
    show: Any
    if kind == "data":
        data = read_data(given.pop("data"), given.pop("target", None), given.pop("groups", None))
        advice, show = advise_data(data, **given), _data
    elif kind == "n":
        for name in ("budget", "noise"):
            if name not in given:
                raise InputError(f"--{name}", None, "a number, with --n")
        advice, show = advise_split(**given), _split
    else:
        advice, show = advise_context(*read_context(given.pop("context")), **given), _context
    rests = rests_on(kind)
    if json:
        many = [asdict(one) for one in advice] if kind == "n" else asdict(advice)
        said = [] if kind == "n" else advice.said()
        whole = {"advice": many, "said": said, "rests_on": [asdict(one) for one in rests]}
        text = formats.dumps(whole, default=_listed)
        # What is no number in JSON, NaN, becomes null.
        plain = formats.loads(text, parse_constant=lambda _: None)
        print(formats.dumps(plain, indent=1, ensure_ascii=False))
        return
    show(advice)
    for one in rests:
        print(f"Rests on: {one.question} [{one.experiment}: {one.id}] {one.answer}.")


def _listed(value: xr.Dataset | np.ndarray) -> Any:
    return value.to_dict() if isinstance(value, xr.Dataset) else value.tolist()


def _table(name: str, frame: pd.DataFrame) -> None:
    def text(value: Any) -> str:
        if not isinstance(value, float):
            return str(value)
        return (f"{value:.3g}" if value < 1000 else "> 1000") if math.isfinite(value) else "–"

    rows = zip(frame.index, frame.to_numpy(object), strict=True)
    print_table(
        (name, *map(str, frame.columns)),
        [(str(row), *map(text, values)) for row, values in rows],
        numbers=True,
    )


def _data(advice: DataAdvice) -> None:
    rows, columns, outputs = advice.size
    print(f"{rows:,} rows, {columns} features, {outputs} outputs. Errors: mean squared, of outputs")
    print("with variance 1, of rows left out; ± standard error. Frames are random, not learned.")
    lines = pd.DataFrame([vars(row) for row in (*advice.rows, *advice.diversity)])
    lines.columns = pd.Index(["method", "error", "±", "less the best", "±", "heads"])
    _table("method", lines.fillna({"heads": "–"}).set_index("method"))
    _table("estimated part", pd.DataFrame({k: vars(part) for k, part in advice.parts.items()}))
    curve = zip(advice.curve.sizes, advice.curve.errors, strict=True)
    print("Learning curve:", ", ".join(f"{n}: {e:.3g}" for n, e in curve))
    print(*advice.notes, *advice.said(), sep="\n")


def _split(every: list[SplitAdvice]) -> None:
    lines = pd.DataFrame([vars(one.best) for one in every], [one.decay for one in every])
    lines["within 5 %: H × d_k"] = [
        ", ".join(f"{s.heads} × {s.width}" for s in one.close) for one in every
    ]
    _table("decay of relevance", lines.rename(columns={"heads": "H*", "width": "d_k*"}))
    if not lines["in_range"].all():
        print(
            f"Not in_range: the best bandwidth is where theory ends ({FEW_KEYS} effective keys); "
            "the split may change with a smaller one."
        )
    print("First order in 1/n: heads share a view of 64 coordinates through noise of their own.")


def _context(advice: ContextAdvice) -> None:
    first = advice.first_order
    print(f"Kept from {advice.short:,} to {advice.long:,} keys: error over that of re-tuning.")
    cost = first["cost"].where(first["in_range"] >= HALF)
    cells = {
        f"d = {width}, β = {beta}": cost.sel(width=width, smoothness=beta).values
        for width in cost["width"].values
        for beta in cost["smoothness"].values
    }
    _table("rule", pd.DataFrame(cells, cost["rule"].values))
    print("To leading order, β = 2, by the dimensions d that the keys of a head fill:")
    leading = advice.leading["cost"].sel(smoothness=2.0)
    widths = [f"d = {d}" for d in leading["dimension"].values]
    _table("rule", pd.DataFrame(leading.values.T, leading["rule"].values, widths))
    print("–: few targets are in the range of first-order theory.")
    print("Scores are of distances, or dot products with keys of one norm.")
    print(*advice.said(), sep="\n")
