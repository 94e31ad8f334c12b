"""The problem: designs, targets, frames, kernels, queries. Pure functions, frozen pytrees."""

from sims.runtime import configure

configure()  # before the first array is made: precision and devices cannot change afterwards

from sims.problem.compression import compressed
from sims.problem.design_laws import (
    CubeDesign,
    CustomDesign,
    Design,
    GaussianDesign,
    MixtureDesign,
    SphereDesign,
)
from sims.problem.designs import DESIGNS, redundant_views
from sims.problem.frames import FRAMES, principal_angles
from sims.problem.kernels import KERNELS, Kernel
from sims.problem.sequences import SEQUENCES, SequenceDesign
from sims.problem.targets import TARGETS, TrigonometricSeries
from sims.problem.task import (
    QUERIES,
    Heads,
    Task,
    ball_queries,
    check_compatible,
    gaussian_queries,
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
    "Design",
    "GaussianDesign",
    "Heads",
    "Kernel",
    "MixtureDesign",
    "SequenceDesign",
    "SphereDesign",
    "Task",
    "TrigonometricSeries",
    "ball_queries",
    "check_compatible",
    "compressed",
    "gaussian_queries",
    "principal_angles",
    "redundant_views",
]
