"""The problem: designs, targets, frames, kernels, queries. Pure functions, frozen pytrees.

The import configures JAX for the entire process: :func:`sims.base.runtime.configure`.
"""

from sims.base.runtime import configure

configure()  # before the first array exists: precision and devices cannot change afterwards

from sims.problem.custom import CustomDesign
from sims.problem.design_laws import (
    CubeDesign,
    Design,
    GaussianDesign,
    MixtureDesign,
    SphereDesign,
    StudentDesign,
)
from sims.problem.designs import DESIGNS, redundant_views
from sims.problem.empirical import EmpiricalDesign
from sims.problem.frames import FRAMES
from sims.problem.kernels import KERNELS, Kernel
from sims.problem.regression import CustomTarget, Target, TrigonometricSeries
from sims.problem.sequences import SEQUENCES, SequenceDesign
from sims.problem.targets import TARGETS
from sims.problem.task import (
    QUERIES,
    Heads,
    Task,
    ball_queries,
    check_compatible,
    correlated_queries,
    gaussian_queries,
    problem_digest,
)

__all__ = [
    "DESIGNS",
    "FRAMES",
    "KERNELS",
    "QUERIES",
    "SEQUENCES",
    "TARGETS",
    "CubeDesign",
    "CustomDesign",
    "CustomTarget",
    "Design",
    "EmpiricalDesign",
    "GaussianDesign",
    "Heads",
    "Kernel",
    "MixtureDesign",
    "SequenceDesign",
    "SphereDesign",
    "StudentDesign",
    "Target",
    "Task",
    "TrigonometricSeries",
    "ball_queries",
    "check_compatible",
    "correlated_queries",
    "gaussian_queries",
    "problem_digest",
    "redundant_views",
]
