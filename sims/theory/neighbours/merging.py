"""Merged keys to first order: what s neighbours of a sequence cost when they become one key.

A chunk of s tokens is a slot with key ``X̄ = Σ_i g_i X_i`` and value ``Ȳ = Σ_i g_i Y_i``; a head
weighs the N = n/s slots by its kernel. Keys are a stationary Gaussian sequence, ``Cov(X_t, X_{t+k})
= ρ_k Σ``; iid keys are ρ_k = 0. Everything follows from the joint law of two slots, Gaussian with
covariance S_k ⊗ Σ, reweighted by kernels (again Gaussian), and from that of their tokens given the
two. Derivation: ``docs/theory/merging.md``. Reconstruction: no paper states these laws.

Valid where many slots are attended to and the sequence is long beside its memory. Designs:
Gaussian, iid or sequences. Targets: trigonometric series. Kernels: gaussian and softmax. NumPy,
float64.
"""

from typing import NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float
from numpy.typing import ArrayLike

from sims.errors import InputError, Uncovered
from sims.problem import (
    GaussianDesign,
    Heads,
    Kernel,
    SequenceDesign,
    Task,
    TrigonometricSeries,
    check_compatible,
)
from sims.problem.kernels import GAUSSIAN, SOFTMAX
from sims.theory.coverage import series_of
from sims.theory.first_order.closed_forms import TILTS, Tilt, labelled, tilted_mean
from sims.weights.merged import SlotScores
from sims.weights.rules import Scores, distance, dot_product

FORGOTTEN = 1e-13
"""Correlations below count as none: lags beyond add nothing that float64 holds."""

IN_TURN = ["einsum_path", (0, 1), (0, 1)]
"""The order of products of three arrays: to look for the best one would take longer than they."""

KERNEL_OF: dict[Scores, Kernel] = {dot_product: SOFTMAX, distance: GAUSSIAN}
"""The kernel that softmax of a score is."""


class Chunk(NamedTuple):
    """Second moments of a chunk of tokens and its slot, in units of Σ.

    Attributes:
        gates: g, weights of the tokens.
        own: ``a_i = Cov(X_i, X̄) = Σ_j ρ_{|i−j|} g_j``.
        variance: ``v = Var X̄ = Σ_i g_i a_i``.
    """

    gates: Float[np.ndarray, " s"]
    own: Float[np.ndarray, " s"]
    variance: float

    @property
    def mass(self) -> float:
        """``Σ g``: what merging makes of the constant 1."""
        return float(self.gates.sum())


class Lag(NamedTuple):
    """Second moments between the tokens of two chunks that lie k slots apart, in units of Σ.

    Attributes:
        tokens: ``ρ_{|ks + j − i|}`` of token i of the first and j of the second.
        first: ``Cov(X_i, X̄')`` of the first chunk's tokens and the second slot.
        second: ``Cov(X'_j, X̄)`` of the second chunk's tokens and the first slot.
        slots: ``c_k = Cov(X̄, X̄')``.
    """

    tokens: Float[np.ndarray, "s s"]
    first: Float[np.ndarray, " s"]
    second: Float[np.ndarray, " s"]
    slots: float


def chunk(gates: ArrayLike, autocorrelation: ArrayLike) -> Chunk:
    """The moments of a chunk from ρ_0, ρ_1, …; correlations beyond those given are 0."""
    own = lag(gates, autocorrelation, 0)
    return Chunk(np.asarray(gates, float), own.first, own.slots)


def lag(gates: ArrayLike, autocorrelation: ArrayLike, k: int) -> Lag:
    """The moments between two chunks k ≥ 0 slots apart."""
    g, rho = np.asarray(gates, float), np.asarray(autocorrelation, float)
    place = np.arange(len(g))
    apart = np.abs(k * len(g) + place[None, :] - place[:, None])
    tokens = np.where(apart < len(rho), rho[np.minimum(apart, len(rho) - 1)], 0.0)
    return Lag(tokens, tokens @ g, tokens.T @ g, float(g @ tokens @ g))


class Merged(NamedTuple):
    """Arrays of the first-order theory of merged heads.

    Attributes:
        limit: m*_h, the value as n → ∞.
        bias: ``E f̂_h − m(x)``.
        signal: ``Cov(g_h, g_g)``.
        noise: ``σ² E Σ_i w_hi w_gi``.
        n_eff: effective number of slots.
        n_third: the same by the third moment.
    """

    limit: Float[np.ndarray, "Q H"]
    bias: Float[np.ndarray, "Q H"]
    signal: Float[np.ndarray, "Q H H"]
    noise: Float[np.ndarray, "Q H H"]
    n_eff: Float[np.ndarray, "Q H"]
    n_third: Float[np.ndarray, "Q H"]


class Slots(NamedTuple):
    """Heads over one or two slots: what :meth:`tilt` reweights.

    Attributes:
        heads: as arrays of NumPy.
        kernel: gaussian or softmax.
        sigma: Σ.
        queries: x.
    """

    heads: Heads
    kernel: Kernel
    sigma: Float[np.ndarray, "d d"]
    queries: Float[np.ndarray, "Q d"]

    def tilt(
        self, covariance: Float[np.ndarray, "m m"], chosen: list[int], slots: list[int]
    ) -> Tilt:
        """The law of m slots, N(0, covariance ⊗ Σ), reweighted by heads at one slot each."""
        h, d = self.heads, len(self.sigma)
        room = [(0, 0), (0, d * (len(covariance) - 1))]
        frames = np.pad(h.frames[chosen], [*room, (0, 0)])
        of_keys = np.zeros_like(frames)
        for row, (head, slot) in enumerate(zip(chosen, slots, strict=True)):
            of_keys[row, slot * d : (slot + 1) * d] = h.of_keys[head]
        return TILTS[self.kernel](
            np.kron(covariance, self.sigma),
            frames,
            of_keys,
            h.bandwidth[chosen],
            np.pad(self.queries, room),
        )


def merged_limit(
    target: TrigonometricSeries, sigma: np.ndarray, own: Chunk, tilt: Tilt
) -> Float[np.ndarray, " Q"]:
    """``m* = Σ_i g_i E m(N(b_i μ, b_i² C + (1 − b_i² v) Σ))``, b_i = a_i/v.

    Args:
        target: m.
        sigma: Σ.
        own: the chunk.
        tilt: the slot's law N(μ, C) reweighted by the head's kernel.
    """
    parts = [
        gate
        * tilted_mean(
            target,
            Tilt(
                tilt.log_mass,
                b * tilt.mean,
                b**2 * tilt.covariance + (1 - b**2 * own.variance) * sigma,
            ),
        )
        for gate, b in zip(own.gates, own.own / own.variance, strict=True)
    ]
    return np.sum(parts, axis=0)


class Paired(NamedTuple):
    """Expectations under two slots reweighted by a kernel at each; G is a slot's ``Σ_i g_i m``."""

    first: Float[np.ndarray, " Q"]
    """E G of the first slot."""
    second: Float[np.ndarray, " Q"]
    """E G' of the second."""
    product: Float[np.ndarray, " Q"]
    """E G G'."""


def paired(
    target: TrigonometricSeries,
    sigma: Float[np.ndarray, "d d"],
    gates: Float[np.ndarray, " s"],
    between: Lag,
    slots: tuple[np.ndarray, Tilt],
    rows: tuple[np.ndarray, np.ndarray],
) -> Paired:
    """Moments of m over the tokens of two slots.

    Given the slots, a token is Gaussian about ``M S⁺`` times them. Products of cosines become
    cosines of sums and differences, as in :func:`~.closed_forms.tilted_moments`.

    Args:
        target: m.
        sigma: Σ.
        gates: g.
        between: the tokens' moments.
        slots: the covariance S of the slots and their reweighted law.
        rows: the covariances M of the tokens with the slots, of the first and the second chunk.
    """
    covariance, tilt = slots
    omega, count, d = target.frequency, len(covariance), len(sigma)
    inverse = np.linalg.pinv(covariance, rcond=1e-12, hermitian=True)
    gains = [row @ inverse for row in rows]
    mean = tilt.mean.reshape(-1, count, d) @ omega.T
    law = np.einsum("jd,adbe,ke->ajbk", omega, tilt.covariance.reshape(count, d, count, d), omega)
    waves = omega @ sigma @ omega.T

    def joint(one: int, other: int, tokens: np.ndarray) -> Float[np.ndarray, "s s J J"]:
        rest = tokens - gains[one] @ covariance @ gains[other].T
        tilted = np.einsum("ia,ajbk,lb->iljk", gains[one], law, gains[other], optimize=IN_TURN)
        return tilted + rest[:, :, None, None] * waves

    within = np.ones((len(gates), len(gates)))  # of a token with itself: the diagonal alone counts
    angle = [np.einsum("ia,qaj->iqj", gain, mean) + target.phase for gain in gains]
    own = [np.einsum("iijj->ij", joint(side, side, within)) for side in (0, 1)]
    cross = joint(0, 1, between.tokens)
    both = -0.5 * (own[0][:, None, :, None] + own[1][None, :, None, :])
    # The exponents are −½ Var(ω_j·X ± ω_k·X'); the bound removes rounding above zero.
    minus, plus = (np.exp(np.minimum(both + sign * cross, 0.0)) for sign in (1, -1))
    size = gates[:, None, None] * target.amplitude
    cosine, sine = ([size * wave(side) for side in angle] for wave in (np.cos, np.sin))
    product = 0.5 * (
        np.einsum("iqj,iljk,lqk->q", cosine[0], minus + plus, cosine[1], optimize=IN_TURN)
        + np.einsum("iqj,iljk,lqk->q", sine[0], minus - plus, sine[1], optimize=IN_TURN)
    )
    means = [np.einsum("iqj,ij->q", cosine[side], np.exp(-0.5 * own[side])) for side in (0, 1)]
    return Paired(means[0], means[1], product)


def merged_arrays(
    target: TrigonometricSeries,
    slots: Slots,
    gates: Float[np.ndarray, " s"],
    rho: Float[np.ndarray, " L"],
    n: int,
    noise_sd: float,
) -> Merged:
    """The closed forms of H heads at Q queries, with N = n/s slots.

    With r_k the ratio ``E[K_h K'_g]/(E K_h E K_g)`` of kernels k slots apart and E_k under them::

        bias     m* − m(x) − (1/N) Σ_k (1 − |k|/N) r_k (E_k G − m*)
        signal   (1/N) Σ_k (1 − |k|/N) r_k E_k[(G − m*_h)(G' − m*_g)]
        noise    σ² Σ g² r_0/N

    over all integer k with |k| < N: the exact covariance of the sums that a ratio expands to.
    """
    own, heads, sigma = chunk(gates, rho), slots.heads, slots.sigma
    count, size, everyone = n // len(gates), len(slots.queries), range(heads.count)
    alone = np.array([[own.variance]])
    singles = [slots.tilt(alone, [h], [0]) for h in everyone]
    limit = np.array([merged_limit(target, sigma, own, tilt) for tilt in singles])
    mass = np.array([tilt.log_mass for tilt in singles])
    cube = np.array([slots.tilt(alone, [h] * 3, [0] * 3).log_mass for h in everyone])
    signal, noise = np.zeros((2, heads.count, heads.count, size))
    ratio_bias = np.zeros((heads.count, size))
    lags = min(count, -(-len(rho) // len(gates)) + 1)
    for k in range(lags):
        between = lag(gates, rho, k)
        if k == 0:
            covariance, rows = alone, (own.own[:, None], own.own[:, None])
        else:
            covariance = np.array([[own.variance, between.slots], [between.slots, own.variance]])
            first = np.stack([own.own, between.first], axis=1)
            rows = first, np.stack([between.second, own.own], axis=1)
        share = (1 - k / count) / count
        for h in everyone:
            for g in everyone:
                tilt = slots.tilt(covariance, [h, g], [0, min(k, 1)])
                overlap = np.exp(tilt.log_mass - mass[h] - mass[g])
                found = paired(target, sigma, own.gates, between, (covariance, tilt), rows)
                centred = found.product - limit[h] * found.second - limit[g] * found.first
                term = share * overlap * (centred + limit[h] * limit[g])
                signal[h, g] += term
                if k:  # −k is the same pair with the heads exchanged
                    signal[g, h] += term
                else:
                    noise[h, g] = noise_sd**2 * (gates @ gates) * overlap / count
                if h == g:
                    ratio_bias[h] -= share * overlap * (found.first - limit[h])
                    if k:
                        ratio_bias[h] -= share * overlap * (found.second - limit[h])
    truth = tilted_mean(target, Tilt(limit[0], slots.queries, np.zeros_like(sigma)))
    own_overlap = np.exp(
        np.array([slots.tilt(alone, [h, h], [0, 0]).log_mass for h in everyone]) - 2 * mass
    )
    return Merged(
        limit.T,
        (limit - truth + ratio_bias).T,
        np.moveaxis(signal, 2, 0),
        np.moveaxis(noise, 2, 0),
        (count / own_overlap).T,
        (count * own_overlap * np.exp(3 * mass - cube)).T,
    )


def merged_terms(
    task: Task, heads: Heads, n: int, queries: ArrayLike, *, weights: ArrayLike | None = None
) -> xr.Dataset:
    """The first-order prediction of merged heads, or of any heads over a sequence.

    Args:
        task: with a Gaussian design, iid or a sequence.
        heads: softmax or gaussian over slots (:func:`sims.weights.merged.merged`) or keys.
        n: number of tokens, a multiple of s.
        queries: (Q, d).
        weights: ensemble weights α (H,), sum 1; None is uniform.

    Returns:
        The dataset of :mod:`sims.terms` with ``n_eff``, ``n_third`` and ``limit`` (query, head).

    Raises:
        InputError: no closed form exists, parts do not fit together, n is no multiple of s, or
            float64 cannot hold the problem.
    """
    points = np.asarray(check_compatible(task, heads, n, queries))
    gates, kernel = _rule(heads)
    if n % len(gates):
        raise InputError("n", n, f"a multiple of the stride {len(gates)} (theory)")
    if isinstance(task.design, SequenceDesign):
        rho = task.design.autocorrelation(n)
        seen = np.flatnonzero(np.abs(rho) > FORGOTTEN)
        rho = rho[: seen[-1] + 1]
    elif isinstance(task.design, GaussianDesign):
        rho = np.ones(1)
    else:
        allowed = "GaussianDesign or SequenceDesign (first order)"
        raise Uncovered("design", type(task.design).__name__, allowed)
    series = series_of(task, "first order")
    sigma, target = np.asarray(task.design.covariance), jax.tree.map(np.asarray, series)
    slots = Slots(jax.tree.map(np.asarray, heads), kernel, sigma, points)
    found = merged_arrays(target, slots, gates, rho, n, float(task.noise_sd))
    facts = {"n_eff": found.n_eff, "n_third": found.n_third, "limit": found.limit}
    return labelled(target, points, n, found.bias, found.signal, found.noise, facts, weights)


def _rule(heads: Heads) -> tuple[Float[np.ndarray, " s"], Kernel]:
    """Gates and kernel of the heads' rule."""
    rule = heads.rule
    if isinstance(rule, Kernel) and rule in TILTS:
        return np.ones(1), rule
    if isinstance(rule, Kernel) or not isinstance(rule.scores, SlotScores):
        allowed = "gaussian, softmax, or merged keys (first order, dependent keys)"
        raise Uncovered("heads.kernel", rule.name, allowed)
    return np.array(rule.scores.gates), KERNEL_OF[rule.scores.score]
