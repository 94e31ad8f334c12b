"""The angle law of every radial kernel, as a power series in the squared cosines."""

from sims.theory.first_order.angle_series.series import (
    AngleSeries,
    aligned_overlap,
    angle_series,
    overlap_at,
)

__all__ = ["AngleSeries", "aligned_overlap", "angle_series", "overlap_at"]
