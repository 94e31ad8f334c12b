"""``sims advise``: tables and sentences of :mod:`sims.advise`, or JSON."""

import json as formats
import math
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
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
    if kind == "data":
        data = read_data(given["data"], given.get("target"), given.get("groups"))
        advice = advise_data(data, given.get("seed", 0))
    elif kind == "n":
        for name in ("budget", "noise"):
            if name not in given:
                raise InputError(f"--{name}", None, "a number, with --n")
        smoothness, rule = given.get("smoothness"), given.get("rule", "gaussian")
        options = given["n"], given["budget"], given["noise"], smoothness
        advice = advise_split(*options, kernel=rule)
    else:
        short, long = read_context(given["context"])
        advice = advise_context(short, long, given.get("rule", "softmax"), given.get("noise", 1.0))
    rests = rests_on("split" if kind == "n" else kind)
    if json:
        whole = {"advice": advice, "rests_on": rests}
        print(formats.dumps(plain(whole), indent=1, ensure_ascii=False, allow_nan=False))
        return
    if kind == "data":
        _data(advice)
    elif kind == "n":
        _split(advice)
    else:
        _context(advice)
    for one in rests:
        print(f"Rests on: {one.question} [{one.experiment}: {one.id}] {one.answer}.")


def plain(value: Any) -> Any:
    """Numbers, texts, lists and mappings alone; NaN and infinities are None."""
    if is_dataclass(value) and not isinstance(value, type):
        own = {name: getattr(value, name) for name in asdict(value)}
        said = {"said": value.said()} if hasattr(value, "said") else {}
        return plain(own | said)
    if isinstance(value, xr.Dataset):
        return plain(value.to_dict())
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _data(advice: DataAdvice) -> None:
    rows, columns, outputs = advice.size
    print(f"{rows:,} rows, {columns} features, {outputs} outputs. Errors: mean squared, of outputs")
    print("with variance 1, of rows left out; ± standard error. Frames are random, not learned.")
    print(*advice.notes, sep="\n", end="\n" * bool(advice.notes))
    print_table(
        ("method", "error", "±", "less the best", "±", "heads"),
        [
            (
                row.name,
                *(f"{v:.3g}" for v in (row.error, row.standard_error)),
                *(f"{v:.2g}" for v in (row.difference, row.difference_error)),
                str(row.setting or "–"),
            )
            for row in (*advice.rows, *advice.diversity)
        ],
        numbers=True,
    )
    names = ("noise", "bias", "variance", "covariance", "kept", "error")
    print_table(
        ("estimated part", *advice.parts),
        [
            (PARTS[name], *(_number(getattr(part, name)) for part in advice.parts.values()))
            for name in names
        ],
        numbers=True,
    )
    curve = zip(advice.curve.sizes, advice.curve.errors, strict=True)
    print("Learning curve:", ", ".join(f"{n}: {e:.3g}" for n, e in curve))
    print(*advice.said(), sep="\n")


PARTS = {
    "noise": "label noise",
    "bias": "squared bias",
    "variance": "variance of a head",
    "covariance": "covariance of two heads",
    "kept": "share of variance that averaging keeps",
    "error": "error",
}


LARGE = 1000
"""Numbers above are not told apart in tables."""


def _number(value: float) -> str:
    if value > LARGE:
        return f"> {LARGE}"
    return f"{value:.3g}" if math.isfinite(value) else "–"


def _split(every: list[SplitAdvice]) -> None:
    print_table(
        ("decay of relevance", "H*", "d_k*", "bandwidth", "error", "n_eff", "within 5 %: H × d_k"),
        [
            (
                one.decay,
                str(one.best.heads),
                str(one.best.width),
                f"{one.best.bandwidth:.3g}",
                f"{one.best.error:.3g}",
                f"{one.best.n_eff:.0f}",
                ", ".join(f"{s.heads} × {s.width}" for s in one.close),
            )
            for one in every
        ],
        numbers=True,
    )
    for one in every:
        if not one.best.in_range:
            print(
                f"{one.decay}: the best bandwidth is where theory ends ({FEW_KEYS} effective "
                "keys); the split may change with a smaller one."
            )
    print("First order in 1/n: heads share a view of 64 coordinates through noise of their own.")


def _context(advice: ContextAdvice) -> None:
    first = advice.first_order
    cells = [(w, b) for w in first["width"].values for b in first["smoothness"].values]

    def cell(**at: Any) -> str:
        one = first.sel(at)
        return _number(float(one["cost"])) + "*" * (float(one["in_range"]) < HALF)

    print(f"Kept from {advice.short:,} to {advice.long:,} keys: error over that of re-tuning.")
    print_table(
        ("rule", *(f"d = {w}, β = {b:g}" for w, b in cells)),
        [
            (str(rule), *(cell(width=w, smoothness=b, rule=rule) for w, b in cells))
            for rule in first["rule"].values
        ],
        numbers=True,
    )
    lead = advice.leading["cost"].sel(smoothness=2.0)
    print("To leading order, β = 2, by the dimensions d that the keys of a head fill:")
    print_table(
        ("rule", *(f"d = {d}" for d in lead["dimension"].values)),
        [
            (str(rule), *(_number(float(v)) for v in lead.sel(rule=rule).values))
            for rule in lead["rule"].values
        ],
        numbers=True,
    )
    print("*: fewer than half of the targets are in the range of first-order theory.")
    print("Scores are of distances, or dot products with keys of one norm.")
    print(*advice.said(), sep="\n")
