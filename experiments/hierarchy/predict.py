"""Scores on scales by theory: errors of levels and ranks."""

import numpy as np
import xarray as xr

from sims.theory.neighbours import hierarchy

from .problems import Problem


def theory(problem: Problem) -> xr.Dataset:
    """The errors of scores, ``error`` (part, kept), with what was drawn."""
    moments = hierarchy.token_moments(problem.taps, problem["tokens"], problem.levels)
    forms = problem.singular_values, problem["head_width"], moments
    spectrum = problem.spectrum
    errors = [hierarchy.level_errors(spectrum, model, *forms) for model in problem.models]
    error = (("part", "kept"), np.transpose(errors))
    return xr.Dataset({"error": error, "levels": problem.levels, **problem.drawn})
