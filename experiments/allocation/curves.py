"""Effects of theory alone: depths of valleys, d_k*(n) and H*(D) as curves, and the map."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import xarray as xr

from sims.effects import Effect, Families
from sims.judgement.curves import deviation
from sims.study.results import Results

from .regimes import SOFTMAX, checked, labelled

TEMPERATURES = ("fixed", "transformer", "tuned")
"""The bandwidth is fixed, has b² in proportion to √d_k, or is re-tuned at every n."""
BUDGET = 24
"""D of the curves d_k*(n) of redundant views."""
WIDE = 512
"""D of those of blocks, far above twice the best width."""
SLOPES = {
    "views": (16, (1e3, 1e4, 1e6)), SOFTMAX + "views": (24, (1e3, 1e4, 1e6)),
    "blocks": (32, (1e3, 1e4)), SOFTMAX + "blocks": (32, (1e3, 1e4)),
}  # fmt: skip
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
        own: Families = {"late growth, transformer": [late_growth(views["optimum"])]}
        for name in TEMPERATURES:
            surface = views["surface"].sel(temperature=name)
            own[f"depth, {name}"] = depths(surface)
            own[f"whole depth, {name}"] = whole_depths(surface)
            own[f"split, blocks, {name}"] = splittings(blocks, "surface", name)
            own[f"split, scaled blocks, {name}"] = splittings(blocks, "scaled_surface", name)
            for geometry, data in (("views", views), ("blocks", blocks)):
                own[f"slope, {geometry}, {name}"] = slopes(data["optimum"], kernel + geometry, name)
            for what in STEPS:
                own[f"step of {what}, {name}"] = steps(views["optimum"].sel(temperature=name), what)
            for family in views["family"].values.tolist():
                widths = views["optimum"].sel(temperature=name, family=family, dense_budget=BUDGET)
                own[f"widths, {name}, {family}"] = curve(widths)
            own[f"quickening, {name}"] = quickenings(views.sel(temperature=name), BUDGET)
            if not kernel:
                own[f"map, {name}"] = regimes(views, name)
                own[f"step of view noise, {name}"] = noise_steps(views, name)
                own[f"growth by view noise, {name}"] = noise_rates(views, name)
        families_of = settings[kernel + "blocks"]["families"]
        for name in blocks["reading"].values.tolist():
            # The relevance of one coordinate does not depend on D in an additive target.
            kept = [k for k, v in families_of.items()
                    if name == "one target" or v["interactions"] == "all"]  # fmt: skip
            widths = blocks["reading_optimum"].sel(reading=name, family=kept)
            own[f"slope, blocks, {name}"] = slopes(
                widths.expand_dims(temperature=["fixed"]), kernel + "blocks", "fixed"
            )
        for family in blocks["family"].values.tolist():
            widths = blocks["optimum"].sel(temperature="fixed", family=family, dense_budget=WIDE)
            own[f"widths, blocks, {family}"] = curve(widths)
        own["quickening, blocks"] = quickenings(blocks.sel(temperature="fixed"), WIDE)
        families |= {kernel + name: effects for name, effects in own.items()}
    return families


def exact(name: str, value: float, **at: float | str) -> Effect:
    """An effect of theory alone, without sampling."""
    return Effect(name, float(value), replicates=0, at=at)


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


def late_growth(optimum: xr.DataArray) -> Effect:
    """Theory's d_k* at the later n over that at the earlier, less 1."""
    hot = optimum.sel(temperature="transformer", family="smooth", dense_budget=BUDGET)
    early, late = (float(hot.sel(dense_n=n, method="nearest")) for n in LATE)
    return exact("growth", late / early - 1)


def curve(widths: xr.DataArray) -> list[Effect]:
    """Theory's d_k* at some n of the range, for laws to be held against."""
    n = widths["dense_n"].values
    count = round(np.log10(n[-1] / n[0]) * PER_DECADE) + 1
    spaced = np.geomspace(n[0], n[-1], count)
    return [
        Effect(
            f"n = {x:.3g}", float(widths.sel(dense_n=x, method="nearest")), x=x, replicates=0,
            at={"n": x},
        )
        for x in spaced.tolist()
    ]  # fmt: skip


def regimes(views: xr.Dataset, temperature: str) -> list[Effect]:
    """Of every cell of the map: the largest deviation of d_k*(n) from a + p log n.

    A share of the rise, over those n at which the best width is an inner one; cells where that is
    fewer than three decades are left out.
    """
    out = []
    for cell, (name, own, y) in enumerate(cells(views, temperature)):
        x, known = views["dense_n"].values, np.isfinite(y)
        x, y = x[known], y[known]
        if len(x) >= FEWEST and x[-1] >= 1e3 * x[0]:
            rate = float((y[-1] - y[0]) / np.log(x[-1] / x[0]))
            out.append(exact(name, deviation(x, y), cell=cell, rate=rate, span=x[-1] / x[0], **own))
    return out


def cells(
    views: xr.Dataset, temperature: str
) -> Iterator[tuple[str, dict[str, float | str], np.ndarray]]:
    """Every cell of the map, in words and as facts, and its d_k*(n)."""
    for cell, y in enumerate(views["map_optimum"].sel(temperature=temperature).values):
        own: dict[str, float | str] = {
            k: float(views[f"cell_{k}"].values[cell]) for k in ("alpha", "nu", "noise", "noise_sd")
        }
        yield ", ".join(f"{k} = {v:g}" for k, v in own.items()), own, y


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
        The share, and how far off it may be: two growths have the errors of four widths.
    """
    power = np.log10(n)
    whole = (np.abs(power - np.round(power)) < 1e-9) & np.isfinite(widths)
    best = dict(zip(np.round(power[whole]).astype(int).tolist(), widths[whole], strict=True))
    grown = [max(best[k + 1] - best[k], 0.0) for k in sorted(best) if k + 1 in best]
    if len(grown) < FEWEST_DECADES:
        return np.nan, 0.0
    largest = max(later - earlier for earlier, later in combinations(grown, 2))
    widest = max(best.values())
    return float(largest / widest), float(4 * errors[whole].max() / widest)


def quickenings(theory: xr.Dataset, budget: int) -> list[Effect]:
    """:func:`quickened` of theory's d_k*(n) at one budget and temperature, by family of targets."""
    out, n = [], theory["dense_n"].values
    for family in theory["family"].values.tolist():
        own = theory.sel(family=family, dense_budget=budget)
        share, off = quickened(n, own["optimum"].values, own["optimum_error"].values)
        out.append(replace(exact(f"{family} target", share, family=family), bound=off))
    return out


def noise_pairs(
    views: xr.Dataset, temperature: str
) -> Iterator[tuple[str, dict[str, float | str], np.ndarray, np.ndarray]]:
    """Cells of the map that are alike but for the views' noise, the least and the most of the map.

    In words and as facts without that noise, and d_k*(n) at the least noise and at the most.
    """
    every = list(cells(views, temperature))
    levels = [float(own["noise"]) for _, own, _ in every]
    least, most = min(levels), max(levels)
    for (_, own, quiet), (_, other, noisy) in product(every, every):
        if least < most and own["noise"] == least and own | {"noise": most} == other:
            facts = {k: v for k, v in own.items() if k != "noise"}
            yield ", ".join(f"{k} = {v:g}" for k, v in facts.items()), facts, quiet, noisy


def noise_steps(views: xr.Dataset, temperature: str) -> list[Effect]:
    """Size of the logarithm of theory's d_k* at the most view noise over that at the least.

    Of every pair of cells of the map, at every n at which both errors are least at an inner width.
    """
    return [
        exact(f"{name}, n = {n:.4g}", abs(np.log(high / low)), n=n, **own)
        for name, own, quiet, noisy in noise_pairs(views, temperature)
        for n, low, high in zip(views["dense_n"].values.tolist(), quiet, noisy, strict=True)
        if np.isfinite([low, high]).all()
    ]


def noise_rates(views: xr.Dataset, temperature: str) -> list[Effect]:
    """Size of the logarithm of the growth of d_k* at the most view noise over that at the least.

    Growth is that from the first to the last n at which both errors are least at an inner width;
    pairs of cells with fewer than three decades of such n are left out.
    """
    out, n = [], views["dense_n"].values
    for name, own, quiet, noisy in noise_pairs(views, temperature):
        known = np.isfinite(quiet) & np.isfinite(noisy)
        x, low, high = n[known], quiet[known], noisy[known]
        if len(x) >= FEWEST and x[-1] >= 1e3 * x[0]:
            ends = np.array([high[-1] - high[0], low[-1] - low[0]])
            # A width that does not grow has no rate to compare: NaN leaves the claim open.
            grown = np.where(ends > 0, ends, np.nan)
            out.append(exact(name, abs(np.log(grown[0] / grown[1])), span=x[-1] / x[0], **own))
    return out


def slopes(optimum: xr.DataArray, geometry: str, temperature: str) -> list[Effect]:
    """Theory's slope of log H* on log D, less 1, by family and n; NaN if a minimum is missing."""
    least, sizes = SLOPES[geometry]
    out = []
    for family, n in product(optimum["family"].values.tolist(), sizes):
        width = optimum.sel(family=family, temperature=temperature).sel(dense_n=n, method="nearest")
        width = width.sel(dense_budget=width["dense_budget"] >= least)
        size, heads = np.log(width["dense_budget"].values), -np.log(width.values)
        centred = size - size.mean()
        out.append(exact(f"{family} target, n = {n:g}", centred @ heads / (centred @ centred)))
    return out


def steps(optimum: xr.DataArray, what: str) -> list[Effect]:
    """Theory's logarithm of d_k* of one family over that of the other of :data:`STEPS`.

    At every n and D at which the error of both is least at an inner width.
    """
    first, second = (optimum.sel(family=name) for name in STEPS[what])
    known = (first / second).stack(case=("dense_n", "dense_budget")).dropna("case")
    cases, values = known["case"].values.tolist(), np.log(known.values)
    return [
        exact(f"n = {n:.4g}, D = {budget}", value, n=n, budget=budget)
        for (n, budget), value in zip(cases, values, strict=True)
    ]
