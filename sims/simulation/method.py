"""What is estimated, and in which arithmetic."""

from dataclasses import dataclass

from sims.errors import InputError, one_of
from sims.montecarlo import Sampling

PRECISIONS = ("float32", "float64")


@dataclass(frozen=True)
class Method:
    """What is estimated, and in which arithmetic; results of different methods cannot be joined.

    Attributes:
        precision: "float32" or "float64", of draws, kernels and sums within a block. Moments are
            float64 always. The two see different draws. A problem whose rounding error float32
            would not hold below 1e-4 of every term is computed in float64, and says so.
        control_variate: take most of the spread out of the signal covariance, unbiased and without
            theory (:class:`~.replicate.Control`), where about ten keys or more are attended to; the
            estimates need no longer be positive semidefinite. Costs a second set of pair sums, and
            a pilot design of 16 n keys. For kernels and iid keys alone.
        raw_labels: also the raw-label estimates.
        keep_queries: False drops everything with a query dimension, keeping integrals.

    Raises:
        InputError: there is no such precision.
    """

    precision: str = "float32"
    control_variate: bool = False
    raw_labels: bool = True
    keep_queries: bool = True

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise InputError("precision", self.precision, one_of(PRECISIONS, self.precision))


class Options(Sampling, total=False):
    """What :func:`~.engine.estimate` takes by name: how much to sample, and parts of a method."""

    precision: str
    control_variate: bool
    raw_labels: bool
    keep_queries: bool
