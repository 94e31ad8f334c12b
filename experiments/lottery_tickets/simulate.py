"""Random sources pruned by exact subset sums, and the attention that comes of it.

Entries are missed as the solver finds; nothing is known here of laws of subset sums.
"""

from collections.abc import Mapping

import numpy as np

from sims.attention.attention import softmax
from sims.montecarlo import Draw

from .problems import FEW, ITEMS, Problem
from .pruning import closest_sum

INPUTS = 8
"""Drawn inputs of which the largest error counts."""
EXACT = 16
"""Items that are searched of a wide source."""
LENGTHS = 4, 64
"""Tokens at which the error of one query is compared."""
CONSTANTS = ("8", "drawn")
"""Constants C of the theorem's widths."""
DIMS = {
    "log_output": ("per_entry",),
    "mean_output": ("per_entry",),
    "log_entry": ("per_entry",),
    "log_ratio": ("per_entry",),
    "log_scaled": ("scale",),
    "error_by_length": ("length",),
    "failed": ("constant",),
}
"""What a batch has, by its dimensions."""
COORDINATES = {
    "per_entry": ITEMS,
    "constant": list(CONSTANTS),
    "scale": ["fourth root", "by the entry", "Xavier"],
    "length": list(LENGTHS),
}


def pruned(draw: Draw, sources: int, problem: Problem) -> Mapping[str, np.ndarray]:
    """A batch of sources, each of nested widths.

    Errors are the largest over drawn inputs of norm √d: of the first head's output, mean log and
    mean; ``log_ratio`` is the mean log of that of some ``x + head(x)`` in series, over the largest
    error of their entries, ``log_entry`` the mean log of an entry's. The others are :func:`scaled`,
    :func:`by_length` and :func:`failed`.
    """
    rng = draw.rng()
    drawn = problem.drawn
    goal = problem.target[: drawn["blocks"]]
    pool = products(rng, (sources, *goal.shape), ITEMS[-1])
    x = tokens(rng, (sources, INPUTS, drawn["tokens"], goal.shape[-1]))
    rows: dict[str, list[float]] = {name: [] for name in list(DIMS)[:4]}
    for items in ITEMS:
        tickets = closest_sum(pool[..., :items], goal)
        output = largest_change(x, tickets[:, :1], goal[:1], False)
        through = largest_change(x, tickets, goal, True)
        error = np.abs(tickets - goal)
        rows["log_output"].append(np.log(output).mean())
        rows["mean_output"].append(output.mean())
        rows["log_entry"].append(np.log(error[:, 0]).mean())
        rows["log_ratio"].append(np.log(through / error.max((1, 2, 3, 4))).mean())
        if items == ITEMS[FEW]:
            few = tickets[:, 0]
    scale_errors = scaled(pool[:, 0, 0, ..., : ITEMS[FEW]], problem)
    lengths = by_length(rng, few, goal[0])
    missed = [failed(rng, sources, problem, c) for c in (8.0, drawn["constant"])]
    others = {"log_scaled": scale_errors, "error_by_length": lengths, "failed": missed}
    return {name: np.array(value) for name, value in (rows | others).items()}


def largest_change(x: np.ndarray, ticket: np.ndarray, goal: np.ndarray, skip: bool) -> np.ndarray:
    """Largest distance of a token's output between pruned and target heads, (S,)."""
    change = passed(x, ticket, skip) - passed(x, goal, skip)
    return np.asarray(np.linalg.norm(change, axis=-1).max((1, 2)))


def products(rng: np.random.Generator, entries: tuple[int, ...], items: int) -> np.ndarray:
    """Items (…, d, d', n') of all entries: v is an entry's own, u is shared down a column."""
    *lead, rows, columns = entries
    u = rng.uniform(-1, 1, (*lead, 1, columns, items))
    return np.asarray(rng.uniform(-1, 1, (*lead, rows, columns, items)) * u)


def tokens(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Tokens on the sphere of radius √d."""
    normal = rng.standard_normal(shape)
    return np.asarray(normal * shape[-1] ** 0.5 / np.linalg.norm(normal, axis=-1, keepdims=True))


def passed(x: np.ndarray, matrices: np.ndarray, skip: bool) -> np.ndarray:
    """Tokens (S, I, T, d) through heads (…, B, 2, d, d) in series, each with a skip or without."""
    for place in range(matrices.shape[-4]):
        pair = matrices[..., place, :, :, :]
        score, value = np.moveaxis(pair[:, None] if pair.ndim > 3 else pair, -3, 0)
        head = softmax(x @ score @ x.swapaxes(-1, -2)) @ (x @ value)
        x = x + head if skip else head
    return x


def scaled(pool: np.ndarray, problem: Problem) -> np.ndarray:
    """Mean log error of W_QK's entries with weights of each scale, of items (S, d, d, n')."""
    goal = problem.target[0, 0]
    errors = [np.abs(closest_sum(pool * c, goal) - goal) for c in problem.factors]
    return np.log(errors).mean((1, 2, 3))


def by_length(rng: np.random.Generator, tickets: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Mean error of one query's output by the number of tokens, of pruned heads (S, 2, d, d)."""
    every = tokens(rng, (len(tickets), 1, max(LENGTHS), goal.shape[-1]))
    errors = []
    for length in LENGTHS:
        x = every[:, :, :length]
        gap = passed(x, tickets[:, None], False) - passed(x, goal[None], False)
        errors.append(np.linalg.norm(gap[:, 0, 0], axis=-1).mean())
    return np.array(errors)


def failed(rng: np.random.Generator, sources: int, problem: Problem, constant: float) -> float:
    """Share of sources of the theorem's widths that miss the accuracy ε with H heads side by side.

    The printed widths are ``d C log(8Hα³d^{3/2}/ε)`` for W_QK and ``d C log(2Hαd^{3/2}/ε)`` for
    W_VO, α = √d. Of many items :data:`EXACT` are searched, and others are taken before where they
    come closer, large ones first, so that the best ticket could only be better.
    """
    goal = problem.target[: problem.drawn["heads"]]
    accuracy = problem.drawn["accuracy"]
    heads, d = len(goal), goal.shape[-1]
    tickets = np.empty((sources, *goal.shape))
    for part, size in enumerate((8 * heads * d**3, 2 * heads * d**2)):
        items = int(np.ceil(constant * np.log(size / accuracy)))
        pool = products(rng, (sources, heads, d, d), items)
        rest = pool[..., EXACT:]
        ranked = np.take_along_axis(rest, np.argsort(-np.abs(rest), axis=-1), -1)
        residual = np.tile(goal[:, part], (sources, 1, 1, 1))
        for item in np.moveaxis(ranked, -1, 0):
            residual -= np.where(np.abs(residual - item) < np.abs(residual), item, 0.0)
        tickets[:, :, part] = goal[:, part] - residual + closest_sum(pool[..., :EXACT], residual)
    x = tokens(rng, (sources, INPUTS, problem.drawn["tokens"], d))
    change = [
        passed(x, tickets[:, h : h + 1], False) - passed(x, goal[h : h + 1], False)
        for h in range(heads)
    ]
    error = np.linalg.norm(np.sum(change, axis=0), axis=-1).max((1, 2))
    return float((error > accuracy).mean())
