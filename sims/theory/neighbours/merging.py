"""Merged keys to first order: what s neighbours of a sequence cost when they become one key.

A chunk of s tokens is a slot with key ``X̄ = Σ_i g_i X_i`` and value ``Ȳ = Σ_i g_i Y_i``; a head
weighs the N = n/s slots by its kernel. Keys are a stationary Gaussian sequence, ``Cov(X_t, X_{t+k})
= ρ_k Σ``; iid keys are ρ_k = 0. Everything follows from the joint law of two slots, Gaussian with
covariance S_k ⊗ Σ, reweighted by kernels (again Gaussian), and from that of their tokens given the
two. Derivation: ``docs/theory/merging.md``. Reconstruction: no paper states these laws.

Valid where many slots are attended to and the sequence is long relative to its memory. Designs:
Gaussian, iid or sequences. Targets: trigonometric series. Kernels: gaussian and softmax. NumPy,
float64.
"""

from typing import NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float
from numpy.typing import ArrayLike

from sims.base.errors import InputError, Uncovered
from sims.problem import (
    Design,
    GaussianDesign,
    Heads,
    Kernel,
    SequenceDesign,
    Task,
    TrigonometricSeries,
    check_compatible,
)
from sims.problem.kernels import QuadraticKernel, kernel_of
from sims.theory.coverage import series_of
from sims.theory.first_order.closed_forms import labelled
from sims.theory.first_order.tilts import Tilt, Waves, tilt_of, tilted_mean
from sims.weights.merged import SlotScores
from sims.weights.rules import WeightRule

FORGOTTEN = 1e-13
"""Correlations below count as none: lags beyond add nothing that float64 holds."""

IN_TURN = ["einsum_path", (0, 1), (0, 1)]
"""The order of products of three arrays: to look for the best one would take longer than they."""


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


def lag(gates: ArrayLike, autocorrelation: ArrayLike, k: int) -> Lag:
    """The moments between two chunks k ≥ 0 slots apart, from ρ_0, ρ_1, …, 0 beyond.

    At k = 0, of a chunk with itself, ``first`` is ``a_i = Cov(X_i, X̄)`` and ``slots`` is
    ``v = Var X̄``.
    """
    g = np.asarray(gates, float)
    rho = np.asarray(autocorrelation, float)
    place = np.arange(len(g))
    distance = np.abs(k * len(g) + place[None, :] - place[:, None])
    tokens = np.where(distance < len(rho), rho[np.minimum(distance, len(rho) - 1)], 0.0)
    return Lag(tokens, tokens @ g, tokens.T @ g, float(g @ tokens @ g))


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
        self, covariance: Float[np.ndarray, "m m"], selected: list[int], slots: list[int]
    ) -> Tilt:
        """The law of m slots, N(0, covariance ⊗ Σ), reweighted by heads at one slot each."""
        h = self.heads
        d = len(self.sigma)
        room = [(0, 0), (0, d * (len(covariance) - 1))]
        frames = np.pad(h.frames[selected], [*room, (0, 0)])
        key_frames = np.zeros_like(frames)
        for row, (head, slot) in enumerate(zip(selected, slots, strict=True)):
            key_frames[row, slot * d : (slot + 1) * d] = h.of_keys[head]
        return tilt_of(self.kernel)(
            np.kron(covariance, self.sigma),
            frames,
            key_frames,
            h.bandwidth[selected],
            np.pad(self.queries, room),
        )


def pair_moments(
    target: TrigonometricSeries,
    sigma: Float[np.ndarray, "d d"],
    gates: Float[np.ndarray, " s"],
    tokens: Float[np.ndarray, "s s"],
    slots: tuple[np.ndarray, Tilt],
    rows: tuple[np.ndarray, np.ndarray],
) -> Float[np.ndarray, "3 Q"]:
    """E G, E G' and E GG' of ``G = Σ_i g_i m(X_i)`` of two slots that kernels reweight.

    Given the slots, a token is Gaussian about ``M S⁺`` times them.

    Args:
        target: m.
        sigma: Σ.
        gates: g.
        tokens: the covariances of the first chunk's tokens with those of the second.
        slots: the covariance S of the slots and their reweighted law.
        rows: the covariances M of the tokens with the slots, of the first and the second chunk.
    """
    covariance, tilt = slots
    omega = target.frequency
    count = len(covariance)
    d = len(sigma)
    inverse = np.linalg.pinv(covariance, rcond=1e-12, hermitian=True)
    gains = [rows[0] @ inverse, rows[1] @ inverse]
    mean = tilt.mean.reshape(-1, count, d) @ omega.T
    law = np.einsum("jd,adbe,ke->ajbk", omega, tilt.covariance.reshape(count, d, count, d), omega)
    waves = omega @ sigma @ omega.T
    amplitude = np.outer(gates, target.amplitude)
    size = amplitude.size

    def joint(first: int, second: int, tokens: np.ndarray) -> Float[np.ndarray, "sJ sJ"]:
        rest = tokens - gains[first] @ covariance @ gains[second].T
        tilted = np.einsum("ia,ajbk,lb->ijlk", gains[first], law, gains[second], optimize=IN_TURN)
        return tilted.reshape(size, size) + np.kron(rest, waves)

    within = np.ones((len(gates), len(gates)))  # of a token with itself: the diagonal alone counts
    sums = []
    for side in (0, 1):
        angle = np.einsum("ia,qaj->qij", gains[side], mean) + target.phase
        cosine = (amplitude * np.cos(angle)).reshape(-1, size)
        sine = (amplitude * np.sin(angle)).reshape(-1, size)
        sums.append(Waves(cosine, sine, np.diag(joint(side, side, within))))
    first, second = sums
    return np.stack([first.mean, second.mean, first.product(second, joint(0, 1, tokens))])


def slot_rule(rule: Kernel | WeightRule) -> tuple[Float[np.ndarray, " s"], Kernel]:
    """Gates of a slot and the kernel that weighs slots; of keys by themselves the gate is 1.

    Raises:
        Uncovered: the rule has no closed forms.
    """
    gates = np.ones(1)
    kernel: Kernel | WeightRule | None = rule
    if isinstance(rule, WeightRule) and isinstance(rule.scores, SlotScores):
        gates = np.array(rule.scores.gates)
        kernel = kernel_of(rule.scores.score)
    if not isinstance(kernel, QuadraticKernel):
        allowed = "gaussian, softmax, or merged keys (first order, dependent keys)"
        raise Uncovered("heads.kernel", rule.name, allowed)
    return gates, kernel


def sequence_law(
    design: Design, n: int
) -> tuple[Float[np.ndarray, " l"], Float[np.ndarray, "d d"]]:
    """ρ_0, ρ_1, … as far as they count, ρ_0 = 1 alone where keys are iid; and Σ.

    Raises:
        Uncovered: the design is not Gaussian.
    """
    if isinstance(design, SequenceDesign):
        rho = design.autocorrelation(n)
        rho = rho[: np.flatnonzero(np.abs(rho) > FORGOTTEN)[-1] + 1]
        return rho, np.asarray(design.covariance)
    if isinstance(design, GaussianDesign):
        return np.ones(1), np.asarray(design.covariance)
    allowed = "GaussianDesign or SequenceDesign (first order)"
    raise Uncovered("design", type(design).__name__, allowed)


def merged_terms(
    task: Task, heads: Heads, n: int, queries: ArrayLike, *, weights: ArrayLike | None = None
) -> xr.Dataset:
    """The first-order prediction of merged heads, or of any heads over a sequence.

    With N = n/s slots, r_k the ratio ``E[K_h K'_g]/(E K_h E K_g)`` of kernels k slots apart and E_k
    under them::

        bias     m* − m(x) − (1/N) Σ_k (1 − |k|/N) r_k (E_k G − m*)
        signal   (1/N) Σ_k (1 − |k|/N) r_k E_k[(G − m*_h)(G' − m*_g)]
        noise    σ² Σ g² r_0/N

    over all integer k with |k| < N: the exact covariance of the sums that a ratio expands to.

    Args:
        task: with a Gaussian design, iid or a sequence.
        heads: softmax or gaussian over slots (:func:`sims.weights.merged.merged`) or keys.
        n: number of tokens, a multiple of s.
        queries: (Q, d).
        weights: ensemble weights α (H,), sum 1; None is uniform.

    Returns:
        The dataset of :mod:`sims.base.terms` with ``n_eff`` and ``n_third`` (of slots, by the
        second and the third moment) and ``limit``, m* (query, head).

    Raises:
        InputError: no closed form exists, parts do not fit together, n is no multiple of s, or
            float64 cannot hold the problem.
    """
    points = np.asarray(check_compatible(task, heads, n, queries))
    gates, kernel = slot_rule(heads.rule)
    if n % len(gates):
        raise InputError("n", n, f"a multiple of the stride {len(gates)} (theory)")
    rho, sigma = sequence_law(task.design, n)
    target: TrigonometricSeries = jax.tree.map(np.asarray, series_of(task, "first order"))
    slots = Slots(jax.tree.map(np.asarray, heads), kernel, sigma, points)
    same_chunk = lag(gates, rho, 0)
    count = n // len(gates)
    alone = np.array([[same_chunk.slots]])
    rows = same_chunk.first[:, None], same_chunk.first[:, None]
    mass, cube, limit = np.empty((3, heads.count, len(points)))
    for h in range(heads.count):
        tilt = slots.tilt(alone, [h], [0])
        mass[h] = tilt.log_mass
        cube[h] = slots.tilt(alone, [h] * 3, [0] * 3).log_mass
        limit[h] = pair_moments(target, sigma, gates, same_chunk.tokens, (alone, tilt), rows)[0]
    truth = tilted_mean(target, Tilt(mass, points, np.zeros_like(sigma)))
    bias = limit - truth
    signal = np.zeros((heads.count, *limit.shape))
    for k in range(min(count, -(-len(rho) // len(gates)) + 1)):
        between = lag(gates, rho, k)
        covariance = alone
        if k:
            covariance = np.array(
                [[same_chunk.slots, between.slots], [between.slots, same_chunk.slots]]
            )
            first = np.stack([same_chunk.first, between.first], axis=1)
            rows = first, np.stack([between.second, same_chunk.first], axis=1)
        overlap = np.empty_like(signal)
        moments = np.empty((3, *signal.shape))
        for h, g in np.ndindex(heads.count, heads.count):
            tilt = slots.tilt(covariance, [h, g], [0, min(k, 1)])
            overlap[h, g] = np.exp(tilt.log_mass - mass[h] - mass[g])
            law = covariance, tilt
            moments[:, h, g] = pair_moments(target, sigma, gates, between.tokens, law, rows)
        first_moment, second_moment, product = moments
        share = (1 - k / count) / count * overlap
        term = share * (
            product - limit[:, None] * second_moment - limit * first_moment + limit[:, None] * limit
        )
        lost = share * (first_moment - limit[:, None])
        if k == 0:
            ratio = np.einsum("hhq->hq", overlap)
            noise = share * (gates @ gates)
        else:  # −k is the same pair with the heads exchanged
            term = term + term.swapaxes(0, 1)
            lost = lost + share * (second_moment - limit[:, None])
        signal = signal + term
        bias = bias - np.einsum("hhq->hq", lost)
    noise = float(task.noise_sd) ** 2 * noise
    third = count * ratio * np.exp(3 * mass - cube)
    facts = {"n_eff": (count / ratio).T, "n_third": third.T, "limit": limit.T}
    signal = np.moveaxis(signal, 2, 0)
    noise = np.moveaxis(noise, 2, 0)
    return labelled(target, points, n, bias.T, signal, noise, facts, weights)
