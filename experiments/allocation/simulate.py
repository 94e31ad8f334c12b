"""Errors of one head and of pooled heads for every split of a budget, on a ladder of bandwidths."""

from collections.abc import Mapping
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.stats import gamma, norm, qmc

from sims.montecarlo import Draw, Replicates
from sims.problem import GaussianDesign, Task, TrigonometricSeries
from sims.simulation import cosine
from sims.simulation import draw as training_set
from sims.study.experiment import Experiment
from sims.study.units import SampledUnit, Unit

from .regimes import checked, groups, pooled_heads

Settings = Mapping[str, Any]
"""The settings of one geometry, as in the experiment's file."""


class Splits(NamedTuple):
    """Every split, padded to one size: as many heads as are pooled, of the largest width.

    Attributes:
        seen: which coordinate of the keys a head sees in a place, (width, head, place).
        own: which one is the noise of its view, (width, head, place).
        noise: that noise's standard deviation, (width,); 0 for blocks.
        members: 1 where a head has such a place, (width, head, place).
        pool: weights of the heads in the pool of a group of targets, (width, group, heads); NaN
            where the width allows neither a pair of heads nor one that sees all.
        bandwidths: (width, rung).
    """

    seen: np.ndarray
    own: np.ndarray
    noise: np.ndarray
    members: np.ndarray
    pool: np.ndarray
    bandwidths: np.ndarray


def units(experiment: Experiment) -> dict[str, Unit]:
    """A unit a geometry and kernel: squared errors by width, rung, family of targets, n and group.

    A group is the budgets that share their targets: all of them for redundant views, each by itself
    for blocks, whose targets depend on all D coordinates. ``head`` is of one head, ``pool`` of the
    average of as many as :func:`pooled_heads` says, both without label noise; ``…_noise`` is what a
    label noise of variance 1 adds. The rungs are the ladder's bandwidths and, last, ``b₁ d_k^¼``.
    All splits share keys, targets and queries, so their differences are paired.
    """
    out: dict[str, Unit] = {}
    for name, settings in checked(experiment.settings).items():
        grid, dims = settings["simulated"], ("width", "rung", "family", "n", "group")
        short = ("width", "rung", "n", "group")
        sampler = Replicates(
            partial(
                split_errors,
                n=tuple(grid["n"]),
                families=len(settings["families"]),
                dot=settings["kernel"] == "softmax",
                alike=alike(grid),
            ),
            per_batch=partial(drawn, settings=settings),
            rows=True,
            constants=arranged(settings),
            dims={"head": dims, "pool": dims, "head_noise": short, "pool_noise": short},
        )
        out[name] = SampledUnit(sampler)
    return out


def arranged(settings: Settings) -> tuple[GaussianDesign, Splits]:
    """The law of the keys, which all splits share, and the splits.

    The keys of redundant views are latent coordinates, then the noise of the first head's
    coordinates, of the second's and so on, as in :func:`sims.problem.redundant_views`.
    """
    grid, rows = settings["simulated"], []
    widths, largest, most = grid["widths"], max(grid["budgets"]), grid["heads"]
    blocks = settings["geometry"] == "blocks"
    columns = max(width * min(most, largest // width) for width in widths)
    head, place = np.arange(most)[:, None], np.arange(max(widths))
    for width in widths:
        members = (head < min(most, largest // width)) & (place < width)
        column = np.where(members, head * width + place, 0)
        pool = np.zeros((len(groups(settings)), most))
        for row, budget in enumerate(groups(settings)):
            pooled = pooled_heads(budget, width, most)
            pool[row] = (np.arange(most) < pooled) / pooled if pooled else np.nan
        rows.append(
            Splits(
                column if blocks else place * members,
                0 * column if blocks else settings["latent"] + column,
                np.asarray(0 if blocks else settings["noise"], np.float32),
                members.astype(np.float32),
                pool.astype(np.float32),
                np.array([*settings["ladder"], settings["bandwidth"] * width**0.25], np.float32),
            )
        )
    law = GaussianDesign(np.eye(largest if blocks else settings["latent"] + columns))
    return law, Splits(*(np.stack(part) for part in zip(*rows, strict=True)))


def alike(grid: Mapping[str, Any]) -> tuple[tuple[int, int, int, int], ...]:
    """Runs of widths that are padded to one size and computed by one program.

    Padded to the widest of all, most of what a narrow head sums would be zeros.

    Returns:
        For every run: the place of its first width in the list, the place after its last, and the
        most heads and the most coordinates of a head that one of its widths has.
    """
    widths, most = grid["widths"], grid["heads"]
    heads = [min(most, max(grid["budgets"]) // width) for width in widths]
    # A power of two, 4 at least: every run is a program of its own.
    size = [max(4, 1 << (width - 1).bit_length()) for width in widths]
    ends = [i + 1 for i in range(len(widths)) if size[i : i + 1] != size[i + 1 : i + 2]]
    return tuple(
        (first, last, max(heads[first:last]), max(widths[first:last]))
        for first, last in zip([0, *ends], ends, strict=False)
    )


def drawn(draw: Draw, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Of a batch: queries (replicate, Q, r), frequencies (…, Q, group, family × wave, r).

    Both come from scrambled Sobol sequences: every point has its law, batches are iid, and a batch
    covers both laws evenly. Every query has waves of its own: more targets for the same work.
    """
    count, waves = settings["queries"]["count"], settings["waves"]
    latent = latents(settings)
    size, rng = draw.replicates * count, draw.rng()
    at = settings["queries"]["scale"] * norm.ppf(_sobol(latent, size, rng))
    frequencies = spectrum(_sobol(latent + 2, size * waves, rng), settings)
    shape = (*frequencies.shape[:2], draw.replicates, count, waves, latent)
    by_query = np.moveaxis(frequencies.reshape(shape), (0, 1), (2, 3))
    return (
        at.reshape(draw.replicates, count, latent).astype(np.float32),
        by_query.reshape(*by_query.shape[:3], -1, latent).astype(np.float32),
    )


def latents(settings: Settings) -> int:
    """Coordinates on which targets may depend."""
    return int(settings.get("latent", max(settings["simulated"]["budgets"])))


def _sobol(dimension: int, size: int, rng: np.random.Generator) -> np.ndarray:
    # A point may be exactly 0, where quantiles are infinite.
    return np.clip(qmc.Sobol(dimension, rng=rng).random(size), 1e-12, 1 - 1e-12)


def spectrum(uniform: np.ndarray, settings: Settings) -> np.ndarray:
    """Frequencies (group, family, wave, r) of the targets from uniform numbers (wave, r + 2).

    Normal, or Student-t with 2ν degrees of freedom: the same normals over ``√g``,
    ``g ~ Gamma(ν, rate ν)``. An additive target's wave lies along one coordinate, drawn evenly.
    """
    base, place = norm.ppf(uniform[:, :-2]), np.arange(uniform.shape[1] - 2)
    out = []
    for budget in groups(settings):
        rows = []
        for family in settings["families"].values():
            if settings["geometry"] == "views":
                alpha, length = (family[k] for k in ("alpha", "lengthscale"))
                wave = np.exp(-0.5 * alpha * place) / length * base
            elif family["interactions"] == "all":
                wave = np.sqrt(family["relevance"] / budget) * base * (place < budget)
            else:
                chosen = np.floor(budget * uniform[:, -1:])
                wave = np.sqrt(family["relevance"]) * base * (place == chosen)
            if (nu := family["nu"]) is not None:
                wave = wave / np.sqrt(gamma.ppf(uniform[:, -2:-1], nu, scale=1 / nu))
            rows.append(wave)
        out.append(rows)
    return np.array(out)


def split_errors(
    key: Array,
    shared: tuple[GaussianDesign, Splits],
    drawn: tuple[Array, Array],
    *,
    n: tuple[int, ...],
    families: int,
    dot: bool,
    alike: tuple[tuple[int, int, int, int], ...],
) -> dict[str, Array]:
    """Squared errors (width, rung, family, n, group) of one replicate, and Σw² without family.

    The label noise is integrated out: with weights w an error is ``(Σ w_i m(X_i) − m(x))² + σ² Σ
    w_i²``. Targets are waves √2 cos(ω·z + φ), averaged over φ: what is squared is complex.

    Args:
        key: of the keys X.
        shared: the keys' law, and the splits.
        drawn: queries (Q, r) and frequencies (Q, group, family × wave, r).
        n: numbers of keys; fewer are the first of the most.
        families: number of families of targets.
        dot: whether scores are dot products (softmax) or distances (gaussian kernel).
        alike: of :func:`alike`; widths rise.
    """
    (law, splits), (at, waves) = shared, drawn
    latent = at.shape[1]
    task = Task(law, TrigonometricSeries([0.0], jnp.zeros((1, len(law.covariance))), [0.0]), 1.0)
    x, _ = training_set(task, key, max(n), jnp.float32)
    waves = waves / (2 * jnp.pi)
    # Keys last: long rows, of which the first so many are the keys of a smaller n.
    turns = jnp.einsum("qgwd,nd->qgwn", waves, x[:, :latent])
    there = jnp.einsum("qgwd,qd->qgw", waves, at)
    values, truths = (
        jnp.concatenate([cosine(turn), cosine(turn - 0.25)], axis=2) for turn in (turns, there)
    )

    def of_split(split: Splits) -> dict[str, Array]:
        coordinates = x.T[split.seen] + split.noise * x.T[split.own]

        def of_query(item: tuple[Array, Array, Array]) -> dict[str, Array]:
            query, value, truth = item
            here = query[split.seen][..., None]
            # Scores at b = 1: a bandwidth divides them by b².
            parts = coordinates * here if dot else -0.5 * (coordinates - here) ** 2
            scores = jnp.sum(split.members[..., None] * parts, axis=1)

            bandwidths, out = jnp.asarray(split.bandwidths)[:, None, None], dict[str, list[Array]]()
            for count in n:
                near = scores[:, :count]
                weights = jnp.exp((near - near.max(1, keepdims=True)) / bandwidths**2)
                scale = 1 / weights.sum(2)
                # Rows of every group, rung by rung: the first head, and the pool, head by head, as
                # one product of so few takes longer.
                shares = jnp.moveaxis(split.pool * scale[:, None], 1, 0)[..., None]
                members = [shares[:, :, h] * weights[:, h] for h in range(weights.shape[1])]
                pooled = reduce(jnp.add, members)
                first = jnp.broadcast_to(weights[:, 0] * scale[:, :1], pooled.shape)
                rows = jnp.stack([first, pooled])
                # A product a group: targets' values are read once for all bandwidths.
                answers = [
                    rows[:, group].reshape(-1, count) @ of_group[:, :count].T
                    for group, of_group in enumerate(value)
                ]
                gap = jnp.stack(answers) - truth[:, None]
                parts = gap.reshape(len(answers), 2, len(bandwidths), 2, families, -1)
                square = jnp.sum(parts**2, axis=3).mean(-1)
                noise = jnp.sum(rows**2, axis=3)
                for place, name in enumerate(("head", "pool")):
                    # From (group, rung, family) and (group, rung).
                    out.setdefault(name, []).append(jnp.moveaxis(square[:, place], 0, -1))
                    out.setdefault(f"{name}_noise", []).append(noise[place].T)
            return {
                name: jnp.stack(rows, axis=1 if name.endswith("noise") else 2)
                for name, rows in out.items()
            }

        by_query = jax.lax.map(of_query, (at, values, truths))
        return {name: value.mean(0) for name, value in by_query.items()}

    def cut(first: int, last: int, heads: int, places: int) -> Splits:
        some = Splits(*(part[first:last] for part in splits))
        whole = ("seen", "own", "members")
        trimmed = {name: getattr(some, name)[:, :heads, :places] for name in whole}
        return some._replace(pool=some.pool[..., :heads], **trimmed)

    parts = [jax.lax.map(of_split, cut(*run)) for run in alike]
    return {name: jnp.concatenate([part[name] for part in parts]) for name in parts[0]}
