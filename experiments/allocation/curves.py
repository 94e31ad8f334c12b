"""Effects of theory alone: depths of valleys, d_k*(n) and H*(D) as curves, and the map."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from sims.effects import Effect, Families
from sims.judgement.curves import deviation, deviation_error
from sims.study.results import Results

from .regimes import SOFTMAX, checked, labelled

TEMPERATURES = ("fixed", "transformer", "tuned")
"""The bandwidth is fixed, has b² in proportion to √d_k, or is re-tuned at every n."""
BUDGET = 24
"""D of the curves d_k*(n) of redundant views."""
WIDE = 512
"""D of those of blocks, far above twice the best width."""
SLOPES = {
    "views": (16, (1e3, 1e4, 1e6)),
    SOFTMAX + "views": (24, (1e3, 1e4, 1e6)),
    "blocks": (32, (1e3, 1e4)),
    SOFTMAX + "blocks": (32, (1e3, 1e4)),
}
"""Of H* on D: the smallest budget, and n."""
LATE = (1e5, 1e8)
"""n between which growth at the Transformer's temperature should be seen."""
PER_DECADE = 2
"""Points of a curve d_k*(n) that a law is held against."""
FEWEST = 7
"""Points of a curve of the map that a law is held against: three decades."""
FEWEST_DECADES = 3
"""Growths of d_k* over a decade of n that are compared with one another, at least."""
STEPS = {"decay": ("slow", "smooth"), "smoothness": ("rough", "smooth")}
"""Families of targets whose d_k* are compared, the first over the second, by what sets them apart:
how fast relevance decays over the coordinates, and how smooth the target is."""


def families_of_theory(results: Results) -> Families:
    """Families of effects without sampling, each for its geometry and temperature.

    Those of the other kernel have "softmax" before their names; the map is of the gaussian one.
    """
    settings, families = checked(results.settings), Families()
    for kernel in ("", SOFTMAX):
        views, blocks = (
            labelled(results.prediction(kernel + k), settings[kernel + k])
            for k in ("views", "blocks")
        )
        own: Families = {"late growth, transformer": [late_growth(views)]}
        for name in TEMPERATURES:
            surface = views["surface"].sel(temperature=name)
            own[f"depth, {name}"] = depths(surface)
            own[f"whole depth, {name}"] = whole_depths(surface)
            own[f"split, blocks, {name}"] = splittings(blocks, "surface", name)
            own[f"split, scaled blocks, {name}"] = splittings(blocks, "scaled_surface", name)
            for geometry, data in (("views", views), ("blocks", blocks)):
                own[f"slope, {geometry}, {name}"] = slopes(data, kernel + geometry, name)
            for what in STEPS:
                own[f"step of {what}, {name}"] = steps(views.sel(temperature=name), what)
            for family in views["family"].values.tolist():
                best = views.sel(temperature=name, family=family, dense_budget=BUDGET)
                own[f"widths, {name}, {family}"] = curve(best)
            own[f"quickening, {name}"] = quickenings(views.sel(temperature=name), BUDGET)
            if not kernel:
                own[f"map, {name}"] = regimes(views, name)
                own[f"step of view noise, {name}"] = noise_steps(views, name)
                own[f"growth by view noise, {name}"] = noise_rates(views, name)
        families_of = settings[kernel + "blocks"]["families"]
        for name in blocks["reading"].values.tolist():
            # The relevance of one coordinate does not depend on D in an additive target.
            kept = [
                k
                for k, v in families_of.items()
                if name == "one target" or v["interactions"] == "all"
            ]
            best = (
                blocks[["reading_optimum", "reading_optimum_error"]]
                .rename(reading_optimum="optimum", reading_optimum_error="optimum_error")
                .sel(reading=name, family=kept)
            )
            own[f"slope, blocks, {name}"] = slopes(
                best.expand_dims(temperature=["fixed"]), kernel + "blocks", "fixed"
            )
        for family in blocks["family"].values.tolist():
            best = blocks.sel(temperature="fixed", family=family, dense_budget=WIDE)
            own[f"widths, blocks, {family}"] = curve(best)
        own["quickening, blocks"] = quickenings(blocks.sel(temperature="fixed"), WIDE)
        families |= {kernel + name: effects for name, effects in own.items()}
    return families


def exact(name: str, value: float | tuple[float, float], **at: float | str) -> Effect:
    """An effect of theory alone, without sampling: its value, or that and how far off it may be."""
    known, off = value if isinstance(value, tuple) else (value, 0.0)
    return Effect(name, float(known), bound=float(off), replicates=0, at=at)


def off_log(widths: ArrayLike, errors: ArrayLike) -> np.ndarray:
    """How far off the logarithms of widths are at most, of the widths' own errors."""
    return -np.log1p(-np.asarray(errors) / np.asarray(widths))


def rows(surface: xr.DataArray) -> Iterator[tuple[str, dict[str, float | str], np.ndarray]]:
    """Every family, n and budget, in words and as facts, and the errors by width."""
    surface = surface.transpose("family", "dense_n", "dense_budget", "dense_width")
    cases = product(*(surface[dim].values.tolist() for dim in surface.dims[:-1]))
    for (family, n, budget), row in zip(
        cases, surface.values.reshape(-1, surface.shape[-1]), strict=True
    ):
        at = {"family": family, "n": n, "budget": budget}
        yield f"{family} target, n = {n:.4g}, D = {budget}", at, row


def depths(surface: xr.DataArray) -> list[Effect]:
    """Theory's error at either end of the admissible widths over the least between, less 1.

    ``H = D/d_k`` is real, and theory seldom reaches one head of all D: whether its curve turns.
    """
    out = []
    for name, at, row in rows(surface):
        known = row[~np.isnan(row)]
        # Fewer than three widths have no inside: NaN leaves the claim open.
        least = known[1:-1].min() if len(known) > 2 else np.nan
        ends = (known[[0, -1]] if known.size else row[:2]) / least - 1
        out += [
            exact(f"{name}, {end}", value, **at)
            for end, value in zip(("narrowest", "widest"), ends, strict=True)
        ]
    return out


def whole_depths(surface: xr.DataArray) -> list[Effect]:
    """Error of heads of width 1, and of one head, over that of the best whole split between.

    Less 1, at every n and D at which theory reaches one head. Between are the widths that divide D.
    """
    out, widths = [], surface["dense_width"].values
    for name, at, row in rows(surface):
        splits = row[at["budget"] % widths == 0]
        if at["budget"] in widths and not np.isnan(splits).any():
            ends = splits[[0, -1]] / splits[1:-1].min() - 1
            out += [
                exact(f"{name}, {end}", value, **at)
                for end, value in zip(("narrowest", "one head"), ends, strict=True)
            ]
    return out


def splittings(blocks: xr.Dataset, surface: str, temperature: str) -> list[Effect]:
    """Of blocks: the least error of one or two heads over that of three and more, less 1.

    Of widths that divide the budget, at the budgets whose half theory's widths reach.
    """
    out, widths = [], blocks["dense_width"].values
    for name, at, row in rows(blocks[surface].sel(temperature=temperature)):
        budget = at["budget"]
        whole = budget % widths == 0
        few, many = row[whole & (2 * widths >= budget)], row[whole & (2 * widths < budget)]
        if 2 * widths.max() >= budget and np.isfinite(few).any():
            gap = np.nanmin(few) / np.nanmin(many) - 1
            out.append(exact(name, gap, **at))
    return out


def late_growth(views: xr.Dataset) -> Effect:
    """Theory's d_k* at the later n over that at the earlier, less 1."""
    hot = views.sel(temperature="transformer", family="smooth", dense_budget=BUDGET)
    hot = hot.sel(dense_n=list(LATE), method="nearest")
    early, late = hot["optimum"].values
    off = off_log(hot["optimum"], hot["optimum_error"]).sum()
    return exact("growth", (late / early - 1, late / early * np.expm1(off)))


def curve(best: xr.Dataset) -> list[Effect]:
    """Theory's d_k* at some n of the range, for laws to be held against."""
    n = best["dense_n"].values
    count = round(np.log10(n[-1] / n[0]) * PER_DECADE) + 1
    out = []
    for x in np.geomspace(n[0], n[-1], count).tolist():
        at = best.sel(dense_n=x, method="nearest")
        off = np.nan_to_num(float(at["optimum_error"]))  # of a width that is not known
        known = exact(f"n = {x:.3g}", (float(at["optimum"]), off), n=x)
        out.append(replace(known, x=x))
    return out


def regimes(views: xr.Dataset, temperature: str) -> list[Effect]:
    """Of every cell of the map: the largest deviation of d_k*(n) from a + p log n.

    A share of the rise, over those n at which the best width is an inner one; cells where that is
    fewer than three decades are left out.
    """
    out = []
    for cell, (name, own, y, errors) in enumerate(cells(views, temperature)):
        x, known = views["dense_n"].values, np.isfinite(y)
        x, y, errors = x[known], y[known], errors[known]
        if len(x) >= FEWEST and x[-1] >= 1e3 * x[0]:
            rate = float((y[-1] - y[0]) / np.log(x[-1] / x[0]))
            value = deviation(x, y), deviation_error(x, y, errors)
            out.append(exact(name, value, cell=cell, rate=rate, span=x[-1] / x[0], **own))
    return out


def cells(
    views: xr.Dataset, temperature: str
) -> Iterator[tuple[str, dict[str, float | str], np.ndarray, np.ndarray]]:
    """Every cell of the map, in words and as facts, its d_k*(n), and how far off that may be."""
    of = views.sel(temperature=temperature)
    for cell, y in enumerate(of["map_optimum"].values):
        own: dict[str, float | str] = {
            k: float(views[f"cell_{k}"].values[cell]) for k in ("alpha", "nu", "noise", "noise_sd")
        }
        words = ", ".join(f"{k} = {v:g}" for k, v in own.items())
        yield words, own, y, of["map_optimum_error"].values[cell]


def quickened(n: np.ndarray, widths: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """By how much d_k* grows more in a decade of n than in an earlier one, as a share of its most.

    ``max_{i<j} (g_j − g_i)/max y`` with ``g_i = max(y(10^{i+1}) − y(10^i), 0)`` the growth of
    ``y = d_k*`` from one power of ten of n to the next, a fall being none: negative or 0 for a
    curve that is concave in log n or falls, 0 for ``a + p log n``. Powers at which y is not known
    are left out; NaN where fewer than :data:`FEWEST_DECADES` growths are left.

    Args:
        n: numbers of keys (k,), powers of ten among them.
        widths: d_k*, (k,), NaN where it is not known.
        errors: how far off each of them may be, (k,).

    Returns:
        The share, and how far off it may be: a difference of growths has the errors of the widths
        that it is made of, and the share that of the largest width, too.
    """
    power = np.log10(n)
    kept = (np.abs(power - np.round(power)) < 1e-9) & np.isfinite(widths)
    order = np.round(power[kept]).astype(int).tolist()
    best = dict(zip(order, zip(widths[kept], errors[kept], strict=True), strict=True))
    grown = [
        (max(best[k + 1][0] - best[k][0], 0.0), best[k + 1][1] + best[k][1])
        for k in sorted(best)
        if k + 1 in best
    ]
    if len(grown) < FEWEST_DECADES:
        return np.nan, 0.0
    rises = [(b - a, off + own) for (a, own), (b, off) in combinations(grown, 2)]
    largest = max(rise for rise, _ in rises)
    off = max(
        largest - max(rise - e for rise, e in rises), max(rise + e for rise, e in rises) - largest
    )
    widest, loose = (float(np.max(column)) for column in zip(*best.values(), strict=True))
    share = largest / widest
    return float(share), float((off + abs(share) * loose) / (widest - loose))


def quickenings(theory: xr.Dataset, budget: int) -> list[Effect]:
    """:func:`quickened` of theory's d_k*(n) at one budget and temperature, by family of targets."""
    out, n = [], theory["dense_n"].values
    for family in theory["family"].values.tolist():
        own = theory.sel(family=family, dense_budget=budget)
        share, off = quickened(n, own["optimum"].values, own["optimum_error"].values)
        out.append(exact(f"{family} target", (share, off), family=family))
    return out


def noise_pairs(
    views: xr.Dataset, temperature: str
) -> Iterator[tuple[str, dict[str, float | str], np.ndarray, np.ndarray]]:
    """Cells of the map that are alike but for the views' noise, the least and the most of the map.

    In words and as facts without that noise; d_k*(n) at the least noise and at the most, (2, n),
    and how far off they may be.
    """
    every = list(cells(views, temperature))
    levels = [float(own["noise"]) for _, own, *_ in every]
    least, most = min(levels), max(levels)
    for (_, own, *quiet), (_, other, *noisy) in product(every, every):
        if least < most and own["noise"] == least and own | {"noise": most} == other:
            facts = {k: v for k, v in own.items() if k != "noise"}
            words = ", ".join(f"{k} = {v:g}" for k, v in facts.items())
            yield words, facts, *np.stack([quiet, noisy], axis=1)


def noise_steps(views: xr.Dataset, temperature: str) -> list[Effect]:
    """Size of the logarithm of theory's d_k* at the most view noise over that at the least.

    Of every pair of cells of the map, at every n at which both errors are least at an inner width.
    """
    out = []
    for name, own, widths, errors in noise_pairs(views, temperature):
        sizes, off = np.abs(np.diff(np.log(widths), axis=0)[0]), off_log(widths, errors).sum(0)
        out += [
            exact(f"{name}, n = {n:.4g}", (size, own_off), n=n, **own)
            for n, size, own_off in zip(views["dense_n"].values.tolist(), sizes, off, strict=True)
            if np.isfinite(size)
        ]
    return out


def noise_rates(views: xr.Dataset, temperature: str) -> list[Effect]:
    """Size of the logarithm of the growth of d_k* at the most view noise over that at the least.

    Growth is that from the first to the last n at which both errors are least at an inner width;
    pairs of cells with fewer than three decades of such n are left out.
    """
    out, n = [], views["dense_n"].values
    for name, own, widths, errors in noise_pairs(views, temperature):
        known = np.isfinite(widths).all(0)
        x, widths, errors = n[known], widths[:, known], errors[:, known]
        if len(x) >= FEWEST and x[-1] >= 1e3 * x[0]:
            ends, off = widths[:, -1] - widths[:, 0], errors[:, -1] + errors[:, 0]
            # A width that does not grow has no rate to compare: NaN leaves the claim open.
            ends = np.where(ends > off, ends, np.nan)
            size, share = abs(np.log(ends[1] / ends[0])), np.nan_to_num(off_log(ends, off)).sum()
            out.append(exact(name, (size, share), span=x[-1] / x[0], **own))
    return out


def slopes(best: xr.Dataset, geometry: str, temperature: str) -> list[Effect]:
    """Theory's slope of log H* on log D, less 1, by family and n; NaN if a minimum is missing."""
    least, sizes = SLOPES[geometry]
    out, best = [], best.sel(dense_budget=best["dense_budget"] >= least)
    for family, n in product(best["family"].values.tolist(), sizes):
        own = best.sel(family=family, temperature=temperature).sel(dense_n=n, method="nearest")
        own = own.transpose("dense_budget", ...)
        size, widths = np.log(own["dense_budget"].values), own["optimum"].values
        pull = (size - size.mean()) / np.sum((size - size.mean()) ** 2)
        off = np.nan_to_num(np.abs(pull) @ off_log(widths, own["optimum_error"]))
        out.append(exact(f"{family} target, n = {n:g}", (-pull @ np.log(widths), off)))
    return out


def steps(best: xr.Dataset, what: str) -> list[Effect]:
    """Theory's logarithm of d_k* of one family over that of the other of :data:`STEPS`.

    At every n and D at which the error of both is least at an inner width.
    """
    pair = best[["optimum", "optimum_error"]].sel(family=list(STEPS[what]))
    pair = pair.stack(case=("dense_n", "dense_budget")).transpose("family", "case")
    pair = pair.isel(case=np.isfinite(pair["optimum"].values).all(0))
    values = -np.diff(np.log(pair["optimum"].values), axis=0)[0]
    off = off_log(pair["optimum"], pair["optimum_error"]).sum(0)
    return [
        exact(f"n = {n:.4g}, D = {budget}", (value, own), n=n, budget=budget)
        for (n, budget), value, own in zip(pair["case"].values.tolist(), values, off, strict=True)
    ]
