"""Best temperature and best frames of a problem, by the gradient of exact theory.

Run with ``python docs/examples/best_heads.py``. The gradient is that of
:func:`sims.theory.terms`, which needs JAX's 64-bit numbers (importing sims switches them on).
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from sims import DESIGNS, FRAMES, TARGETS, Heads, Task, predict
from sims.theory import terms

N = 64
TASK = Task(DESIGNS["isotropic"](4), TARGETS["rbf"](4, seed=1, lengthscale=2.0), noise_sd=0.5)
FRAME = FRAMES["haar"](4, 2, 2, seed=0)
QUERIES = jnp.asarray(np.random.default_rng(0).normal(size=(2, 4)))


def heads_of(parameters):
    """Heads of orthonormal frames, from the logarithm of a bandwidth and any matrices."""
    frames = jnp.linalg.qr(parameters[1:].reshape(FRAME.shape))[0]
    return Heads(frames, "gaussian", jnp.exp(parameters[0]))


@jax.jit
@jax.value_and_grad
def error(parameters):
    """MSE of the average of the heads, and its gradient, on 1,024 points a randomisation."""
    return terms(TASK, heads_of(parameters), N, QUERIES, order="exact", level=-2)["mse"]


def best_bandwidth(frames):
    """The bandwidth of least error of given frames."""

    def of_log_bandwidth(log_bandwidth):
        value, gradient = error(np.concatenate([log_bandwidth, np.ravel(frames)]))
        return float(value), np.asarray(gradient[:1])

    return float(np.exp(minimize(of_log_bandwidth, [0.0], jac=True, options={"gtol": 1e-3}).x[0]))


def best_frames(bandwidth, frames):
    """Bandwidth and frames of least error, from given ones."""

    def of_parameters(parameters):
        value, gradient = error(parameters)
        return float(value), np.asarray(gradient)

    start = np.concatenate([[np.log(bandwidth)], np.ravel(frames)])
    return heads_of(jnp.asarray(minimize(of_parameters, start, jac=True, options={"maxiter": 6}).x))


def on_grid(frames, bandwidths):
    """Errors of given frames by ``predict``."""
    return [
        float(predict(TASK, Heads(frames, "gaussian", b), N, QUERIES, "exact", rtol=0.02)["mse"])
        for b in bandwidths
    ]


def main():
    """Print the best bandwidth beside a grid, and what turning the frames adds."""
    bandwidth = best_bandwidth(FRAME)
    grid = bandwidth * 2.0 ** np.array([-0.5, 0.0, 0.5])
    for b, value in zip(grid, on_grid(FRAME, grid), strict=True):
        print(f"bandwidth {b:.2f}: error {value:.4f}")
    turned = best_frames(bandwidth, FRAME)
    (value,) = on_grid(turned.frames, turned.bandwidth[:1])
    print(f"best frames, bandwidth {float(turned.bandwidth[0]):.2f}: error {value:.4f}")


if __name__ == "__main__":
    main()
