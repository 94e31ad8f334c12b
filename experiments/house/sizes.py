"""Size of the change over the ladder against selectivity and skill, by a hierarchical model.

Of problem i in family f, with x the logarithm of n_eff/n and z the skill, both standardised::

    y_i ~ StudentT(4, a_f + b_f x_i + c x_i² + d z_i, sqrt(σ² + e_i²)),
    a_f ~ N(a, s_a²),    b_f ~ N(b, s_b²)

y is the change in percent and e its Monte Carlo error. Families share a and b, so that one of few
problems leans on the others.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

from sims.base.runtime import configure

configure()

WARMUP, DRAWS, CHAINS = 400, 400, 2
HEAVY = 4.0
"""Degrees of freedom of Student's t: few problems change by very much."""
PRIOR = 20.0
"""Scale of the coefficients a priori, percentage points."""


class SizeModel(NamedTuple):
    """Posterior of the model.

    Attributes:
        x: log n_eff/n at which the curve is told.
        curve: 2.5, 50 and 97.5 % of the mean over families at median skill, (3, K).
        coefficients: name to median and the ends of the central 95 %.
    """

    x: np.ndarray
    curve: np.ndarray
    coefficients: dict[str, tuple[float, float, float]]


def fit(
    change: np.ndarray,
    error: np.ndarray,
    selectivity: np.ndarray,
    skill: np.ndarray,
    family: np.ndarray,
) -> SizeModel:
    """The model of the changes (N,) of problems, in percent, by NUTS."""
    logs = np.log(selectivity)
    center, scale = logs.mean(), logs.std()
    x = (logs - center) / scale
    z = (skill - np.median(skill)) / skill.std()
    names, place = np.unique(family, return_inverse=True)

    def model() -> None:
        coefficient = dist.Normal(0, PRIOR)
        intercept = numpyro.sample("intercept", coefficient)
        slope = numpyro.sample("slope", coefficient)
        bend = numpyro.sample("bend", coefficient)
        by_skill = numpyro.sample("skill", coefficient)
        spread = numpyro.sample("spread", dist.HalfNormal(PRIOR).expand([2]))
        with numpyro.plate("families", len(names)):
            offset = numpyro.sample("offset", dist.Normal(0, 1))
            tilt = numpyro.sample("tilt", dist.Normal(0, 1))
        scatter = numpyro.sample("scatter", dist.HalfNormal(PRIOR))
        level = intercept + spread[0] * offset[place]
        mean = level + (slope + spread[1] * tilt[place]) * x + bend * x**2 + by_skill * z
        width = jnp.sqrt(scatter**2 + error**2)
        numpyro.sample("change", dist.StudentT(HEAVY, mean, width), obs=jnp.asarray(change))

    sampler = MCMC(
        NUTS(model, target_accept_prob=0.9),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    sampler.run(jax.random.key(0))
    draws = {name: np.asarray(values) for name, values in sampler.get_samples().items()}
    grid = np.quantile(x, np.linspace(0.02, 0.98, 40))
    lines = (
        draws["intercept"][:, None]
        + draws["slope"][:, None] * grid
        + draws["bend"][:, None] * grid**2
    )
    ends = (0.025, 0.5, 0.975)
    told = {}
    for name in ("intercept", "slope", "skill"):
        low, median, high = np.quantile(draws[name], ends)
        told[name] = (float(median), float(low), float(high))
    return SizeModel(grid * scale + center, np.quantile(lines, ends, axis=0), told)
