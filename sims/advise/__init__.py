"""Advice on attention heads: from data, from theory, and for a longer context.

Every function returns the numbers that ``sims advise`` prints, as dataclasses, arrays and xarray
datasets.
"""

from sims.advise.answers import Rests, rests_on
from sims.advise.context import ContextAdvice, advise_context, read_context
from sims.advise.data import DataAdvice, advise_data
from sims.advise.reading import Data, prepared, read_data
from sims.advise.regressor import HeadsRegressor
from sims.advise.search import Setting
from sims.advise.split import Split, SplitAdvice, advise_split

__all__ = [
    "ContextAdvice",
    "Data",
    "DataAdvice",
    "HeadsRegressor",
    "Rests",
    "Setting",
    "Split",
    "SplitAdvice",
    "advise_context",
    "advise_data",
    "advise_split",
    "prepared",
    "read_context",
    "read_data",
    "rests_on",
]
