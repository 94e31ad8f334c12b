"""Heads given a layer's output: the share that is lost.

``Z = Σ_h D_h Y_h W_h`` with Y_h (n × d_k), W_O = [W_1; …; W_H] (H d_k × d), D_h = diag g_·h.
"""

import numpy as np
from jaxtyping import Float
from scipy import linalg

Array = np.ndarray


def lost_share(
    factors: Float[Array, "H n r"],
    gates: Float[Array, "n H"],
    output: Float[Array, "H k d"],
    noise: float,
) -> float:
    """Share of the heads' variance that no function of the mixed output recovers.

    Heads are ``Y_h = F_h V_h`` with V_h of independent N(0, 1) entries, of covariance
    ``K_h = F_h F_hᵀ`` between tokens, and the output Z has normal noise of variance s². With
    ``S = Σ_h D_h K_h D_h ⊗ W_hᵀW_h + s²I``, the covariance of Z, the conditional mean has the share
    ``tr[S⁻¹ Σ_h D_h K_h² D_h ⊗ W_hᵀW_h]/(d_k Σ_h tr K_h)`` of the variance; the rest is lost.

    Args:
        factors: F_h, of heads whose tokens' covariances are known.
        gates: g, known.
        output: W_h.
        noise: s over the root mean square of the noiseless Z.
    """
    covariance = factors @ factors.swapaxes(1, 2)
    pairs = gates.T[:, :, None] * gates.T[:, None, :]
    mixes = output.swapaxes(1, 2) @ output
    size = len(gates) * output.shape[2]

    def mix(factor: Float[np.ndarray, "H n n"]) -> Float[np.ndarray, "nc nc"]:
        return np.einsum("hij,hkl->ikjl", pairs * factor, mixes).reshape(size, size)

    mixed = mix(covariance)
    signal = mix(covariance @ covariance)
    noisy = mixed + noise**2 * np.trace(mixed) / size * np.eye(size)
    explained = np.trace(linalg.solve(noisy, signal, assume_a="pos"))
    total = output.shape[1] * np.trace(covariance, axis1=1, axis2=2).sum()
    return float(1 - explained / total)
