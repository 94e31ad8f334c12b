"""``sims schema``: JSON schemas of the files that users write."""

import json

from pydantic import BaseModel

from sims.study.describing import VariablesSpec
from sims.study.papers import Paper
from sims.study.schema import ExperimentSpec
from sims.study.specification import ProblemSpec
from sims.study.sweepfile import DecomposeSpec, SweepSpec

MODELS: dict[str, type[BaseModel]] = {
    "experiment": ExperimentSpec,
    "problem": ProblemSpec,
    "decompose": DecomposeSpec,
    "sweep": SweepSpec,
    "paper": Paper,
    "variables": VariablesSpec,
}
"""Kind of file to its model."""


def print_schema(kind: str) -> None:
    """Print the JSON schema of a kind of file."""
    print(json.dumps(MODELS[kind].model_json_schema(), indent=1, ensure_ascii=False))
