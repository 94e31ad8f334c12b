"""What a kept temperature does as the number of keys grows: laws, and first-order errors."""

from sims.theory.context.errors import RULES, Problems, Table, tables
from sims.theory.context.laws import (
    attended_exponent,
    attended_law,
    best_temperature,
    error_exponent,
    kernel_volume,
    radius_law,
    score_attended,
    score_threshold,
    squared_radius,
    temperature_exponent,
)

__all__ = [
    "RULES",
    "Problems",
    "Table",
    "attended_exponent",
    "attended_law",
    "best_temperature",
    "error_exponent",
    "kernel_volume",
    "radius_law",
    "score_attended",
    "score_threshold",
    "squared_radius",
    "tables",
    "temperature_exponent",
]
