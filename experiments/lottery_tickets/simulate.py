"""Random sources pruned by exact subset sums, and the attention that comes of it.

Entries are missed as the solver finds; nothing is known here of laws of subset sums.
"""

import numpy as np
from numpy.typing import ArrayLike

from sims.attention.attention import softmax
from sims.montecarlo import Draw, HostBatches

from .problems import FEW, ITEMS, Problem
from .pruning import closest_sum

INPUTS = 8
"""Drawn inputs of which the largest error counts."""
CONSTANT = 8.0
"""C of the theorem's widths, which the paper leaves open."""
EXACT = 16
"""Items that are searched of a wide source."""
WIDTH_ERRORS = ("log_output", "mean_output", "log_entry", "log_ratio")
"""Errors by the width of a source."""
DIMS = {
    **dict.fromkeys(WIDTH_ERRORS, ("per_entry",)),
    "log_scaled": ("scale",),
    "failed": (),
}
"""What a batch has, by its dimensions."""
COORDINATES = {"per_entry": ITEMS, "scale": ["fourth root", "Xavier"]}


def sampler(problem: Problem) -> HostBatches:
    """Errors of pruned heads, alone, in series and side by side."""
    return HostBatches(batch, constants=problem, dims=DIMS, coords=COORDINATES)


def batch(draw: Draw, sources: int, problem: Problem) -> dict[str, ArrayLike]:
    """Errors of some sources, each of nested widths, by :func:`ticket_errors`; and others."""
    rng = draw.rng()
    goal = problem.target[: problem["blocks"]]
    pool = products(rng, (sources, *goal.shape), ITEMS[-1])
    x = tokens(rng, (sources, INPUTS, problem["tokens"], goal.shape[-1]))
    scaled = np.multiply.outer(problem.factors, pool[:, 0, 0, ..., : ITEMS[FEW]])
    scores = goal[0, 0]
    tickets = [closest_sum(pool[..., :items], goal)[:, None] for items in ITEMS]
    errors = np.transpose([ticket_errors(x, ticket, goal) for ticket in tickets])
    return {
        **dict(zip(WIDTH_ERRORS, errors, strict=True)),
        "log_scaled": np.log(np.abs(closest_sum(scaled, scores) - scores)).mean((1, 2, 3)),
        "failed": failure_share(rng, sources, problem),
    }


def ticket_errors(x: np.ndarray, tickets: np.ndarray, goal: np.ndarray) -> list[float]:
    """:data:`WIDTH_ERRORS` of tickets (S, 1, B, 2, d, d), the largest over inputs of norm √d.

    Of the first head's output mean log and mean; ``log_ratio`` is the mean log of the error of
    blocks in series over the largest error of their entries, ``log_entry`` that of an entry's.
    """
    output = largest_norm(attend(x, tickets[:, :, 0]) - attend(x, goal[0]))
    through = largest_norm(pass_blocks(x, tickets) - pass_blocks(x, goal))
    error = np.abs(tickets - goal)
    return [
        np.log(output).mean(),
        output.mean(),
        np.log(error[:, :, 0]).mean(),
        np.log(through / error.max((1, 2, 3, 4, 5))).mean(),
    ]


def largest_norm(change: np.ndarray) -> np.ndarray:
    """Largest norm of a token's change over all inputs of a source, (S,)."""
    return np.linalg.norm(change, axis=-1).max((1, 2))


def products(rng: np.random.Generator, entries: tuple[int, ...], items: int) -> np.ndarray:
    """Items (…, d, d', n') of all entries: each has its v, u is shared down a column."""
    *lead, rows, columns = entries
    u = rng.uniform(-1, 1, (*lead, 1, columns, items))
    return rng.uniform(-1, 1, (*lead, rows, columns, items)) * u


def tokens(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Tokens on the sphere of radius √d."""
    normal = rng.standard_normal(shape)
    return normal * shape[-1] ** 0.5 / np.linalg.norm(normal, axis=-1, keepdims=True)


def attend(x: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Output of a head at tokens (S, I, T, d), by its W_QK and W_VO (…, 2, d, d)."""
    score, value = np.moveaxis(matrices, -3, 0)
    return softmax(x @ score @ x.swapaxes(-1, -2)) @ (x @ value)


def pass_blocks(x: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Tokens after some ``x + head(x)`` in series, by their matrices (…, B, 2, d, d)."""
    for block in np.moveaxis(blocks, -4, 0):
        x = x + attend(x, block)
    return x


def failure_share(rng: np.random.Generator, sources: int, problem: Problem) -> float:
    """Share of sources of the theorem's widths that miss the accuracy ε with H heads side by side.

    The printed widths are ``d C log(8Hα³d^{3/2}/ε)`` for W_QK and ``d C log(2Hαd^{3/2}/ε)`` for
    W_VO, α = √d, here with :data:`CONSTANT`.
    """
    goal = problem.target[: problem["heads"]]
    accuracy = problem["accuracy"]
    heads, _, d, _ = goal.shape
    tickets = np.empty((sources, *goal.shape))
    for part, size in enumerate((8 * heads * d**3, 2 * heads * d**2)):
        items = int(np.ceil(CONSTANT * np.log(size / accuracy)))
        pool = products(rng, (sources, heads, d, d), items)
        tickets[:, :, part] = prune_wide(pool, goal[:, part])
    x = tokens(rng, (sources, INPUTS, problem["tokens"], d))
    change = [attend(x, tickets[:, None, h]) - attend(x, goal[h]) for h in range(heads)]
    return float((largest_norm(np.sum(change, axis=0)) > accuracy).mean())


def prune_wide(pool: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Sums of many items (S, H, d, d, n') for each entry, close to the goal.

    :data:`EXACT` items are searched, and others are taken before where they come closer, large ones
    first, so that the best ticket could only be better.
    """
    rest = pool[..., EXACT:]
    ranked = np.take_along_axis(rest, np.argsort(-np.abs(rest), axis=-1), -1)
    residual = np.tile(goal, (len(pool), 1, 1, 1))
    for item in np.moveaxis(ranked, -1, 0):
        residual -= np.where(np.abs(residual - item) < np.abs(residual), item, 0.0)
    return goal - residual + closest_sum(pool[..., :EXACT], residual)
