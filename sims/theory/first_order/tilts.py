"""Laws of a key tilted by the weight of a head: its total, mean and covariance, and waves under it.

A tilt is the law of a key with density proportional to the kernel's weight, or a product of two.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxtyping import Float

from sims.base.errors import Uncovered
from sims.problem import Kernel, TrigonometricSeries
from sims.problem.kernels import GaussianKernel, SoftmaxKernel
from sims.theory.arrays import Number, Numbers, namespace


class Tilt(NamedTuple):
    """Design reweighted by a product of kernels at Q queries, which is Gaussian again.

    Attributes:
        log_mass: log E K_S, shape (…, Q).
        mean: μ_S, shape (…, Q, d).
        covariance: C_S, shape (…, d, d) or (d, d), the same for every query.
    """

    log_mass: Float[Numbers, "*sets Q"]
    mean: Float[Numbers, "*sets Q d"]
    covariance: Float[Numbers, "*sets d d"]


def gaussian_tilt(
    sigma: Float[Numbers, "d d"],
    frames: Float[Numbers, "*sets m d k"],
    key_frames: Float[Numbers, "*sets m d k"],
    bandwidth: Float[Numbers, "*sets m"],
    queries: Float[Numbers, "Q d"],
) -> Tilt:
    """Tilt by ``Π_h exp(−‖U_hᵀx − V_hᵀX‖²/2b_h²)`` over the m given heads, of every set of heads.

    With ``S = [V_1/b_1, …, V_m/b_m]``, ``z = [U_1/b_1, …, U_m/b_m]ᵀx`` and ``G = I + SᵀΣS``::

        log E K = −½ log det G − ½ zᵀ G⁻¹ z
        X | K   ~ N(ΣS G⁻¹ z, Σ − ΣS G⁻¹ SᵀΣ)

    (completing the square; G ≻ 0 for any frames, also when heads coincide). Valid for every Σ ⪰ 0.
    """
    xp = namespace(queries)

    def stack(maps: Float[Numbers, "*sets m d k"]) -> Float[Numbers, "*sets d mk"]:
        scaled = (maps / bandwidth[..., None, None]).swapaxes(-3, -2)
        return scaled.reshape(*bandwidth.shape[:-1], len(sigma), -1)

    stacked = stack(frames)
    scaled_keys = stack(key_frames)
    # With G = RRᵀ every G⁻¹ is two triangular solves (docs/theory/first_order.md).
    spread = sigma @ scaled_keys
    gram = xp.eye(scaled_keys.shape[-1]) + scaled_keys.swapaxes(-1, -2) @ spread
    root = xp.linalg.cholesky(gram)
    whitened = xp.linalg.solve(root, stacked.swapaxes(-1, -2) @ queries.T)
    gain = xp.linalg.solve(root, spread.swapaxes(-1, -2))
    log_det = xp.sum(xp.log(xp.diagonal(root, axis1=-2, axis2=-1)), axis=-1, keepdims=True)
    return Tilt(
        -log_det - 0.5 * xp.sum(whitened**2, axis=-2),
        whitened.swapaxes(-1, -2) @ gain,
        sigma - gain.swapaxes(-1, -2) @ gain,
    )


def softmax_tilt(
    sigma: Float[Numbers, "d d"],
    frames: Float[Numbers, "*sets m d k"],
    key_frames: Float[Numbers, "*sets m d k"],
    bandwidth: Float[Numbers, "*sets m"],
    queries: Float[Numbers, "Q d"],
) -> Tilt:
    """Tilt by ``Π_h exp(⟨U_hᵀx, V_hᵀX⟩/s_h)``, s_h = b_h², over the m heads of every set.

    With ``v = Σ_h V_hU_hᵀx/s_h``: ``log E K = ½ vᵀΣv`` and ``X | K ~ N(Σv, Σ)`` (exponential
    tilting of a Gaussian). Valid for every Σ ⪰ 0.
    """
    scaled = frames / bandwidth[..., None, None]
    scaled_keys = key_frames / bandwidth[..., None, None]
    # The exponent is v·X, which moves the mean of X by Σv.
    direction = ((queries @ scaled) @ scaled_keys.swapaxes(-1, -2)).sum(-3)
    mean = direction @ sigma
    return Tilt(0.5 * (direction * mean).sum(-1), mean, sigma)


def tilt_of(kernel: Kernel) -> Callable[..., Tilt]:
    """Formula ``(Σ, frames, key frames, bandwidth, queries) -> Tilt`` of a kernel.

    Raises:
        Uncovered: a kernel without closed forms.
    """
    match kernel:
        case GaussianKernel():
            return gaussian_tilt
        case SoftmaxKernel():
            return softmax_tilt
    allowed = "gaussian, softmax (first order); any by order exact"
    raise Uncovered("heads.kernel", kernel.name, allowed)


def tilted_mean(target: TrigonometricSeries, tilt: Tilt) -> Float[Numbers, "*sets Q"]:
    """``E_S m = Σ_j a_j exp(−½ ω_jᵀC_Sω_j) cos(ω_j·μ_S + c_j)``, shape (…, Q)."""
    xp = namespace(tilt.mean)
    # A cosine of a Gaussian angle: its value at the mean times exp(−½ variance).
    spread = ((target.frequency @ tilt.covariance) * target.frequency).sum(-1)
    angle = tilt.mean @ target.frequency.T + target.phase
    return xp.matvec(xp.cos(angle), target.amplitude * xp.exp(-0.5 * spread))


def tilted_moments(
    target: TrigonometricSeries, tilt: Tilt
) -> tuple[Float[Numbers, "*sets Q"], Float[Numbers, "*sets Q"]]:
    """``E_S m`` and ``E_S m²``, shape (…, Q) each.

    Products of cosines become cosines of sums and differences; with ``s_j = ω_j·μ + c_j`` and
    ``C_jk = ω_jᵀCω_k``::

        E m² = Σ_jk a_j a_k ½ [(E⁻ + E⁺) cos s_j cos s_k + (E⁻ − E⁺) sin s_j sin s_k],
        E^± = exp(−½ (C_jj + C_kk ± 2 C_jk)) ≤ 1.

    The (J, J) matrices are the same for all queries, so each query costs one product.
    """
    xp = namespace(tilt.mean)
    covariance = target.frequency @ tilt.covariance @ target.frequency.T
    diagonal = xp.diagonal(covariance, axis1=-2, axis2=-1)
    angle = tilt.mean @ target.frequency.T + target.phase
    cosine, sine = xp.cos(angle) * target.amplitude, xp.sin(angle) * target.amplitude
    waves = Waves(cosine, sine, diagonal)
    return waves.mean, waves.product(waves, covariance)


class Waves(NamedTuple):
    """A sum of waves ``a_j cos θ_j`` of Gaussian angles.

    Attributes:
        cosine, sine: a cos and a sin of the means of the angles, (…, Q, J).
        variance: of the angles, (…, J).
    """

    cosine: Float[Numbers, "*sets Q J"]
    sine: Float[Numbers, "*sets Q J"]
    variance: Float[Numbers, "*sets J"]

    @property
    def mean(self) -> Float[Numbers, "*sets Q"]:
        """Its expectation."""
        xp = namespace(self.cosine)
        return xp.matvec(self.cosine, xp.exp(-0.5 * self.variance))

    def product(
        self, other: "Waves", covariance: Float[Numbers, "... J K"]
    ) -> Float[Numbers, "*sets Q"]:
        """Expected product with another sum, by the covariances of the angles."""
        xp = namespace(self.cosine)
        mean_variance = -0.5 * (self.variance[..., :, None] + other.variance[..., None, :])
        # The exponents are −½ Var(θ_j ± θ_k); the bound removes rounding above zero.
        difference = xp.exp(xp.minimum(mean_variance + covariance, 0.0))
        total = xp.exp(xp.minimum(mean_variance - covariance, 0.0))
        return 0.5 * (
            xp.sum(self.cosine @ (difference + total) * other.cosine, axis=-1)
            + xp.sum(self.sine @ (difference - total) * other.sine, axis=-1)
        )


def tilted_product(
    target: TrigonometricSeries,
    tilt: Tilt,
    first: Float[Numbers, " Q"],
    second: Float[Numbers, " Q"],
) -> Float[Numbers, " Q"]:
    """``E_S[(m − first)(m − second)]``, shape (Q,)."""
    return about((1.0, *tilted_moments(target, tilt)), first, second)


def about(moments: Sequence[Any] | Numbers, first: Number, second: Number) -> Any:
    """Moments 1, m and m² of a measure made ``(m − first)(m − second)``."""
    mass, mean, square = moments
    return square - (first + second) * mean + first * second * mass
