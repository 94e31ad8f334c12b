"""Experiments of a run of Snakemake, from its configuration. No JAX."""

import sys
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from sims.base.errors import InputError, one_of
from sims.base.places import experiments
from sims.base.validation import Strict, parse
from sims.study.declaration import Declaration
from sims.study.referenced_files import MissingModels, checkpoint

MAX_SHARDS = 10_000


class RunConfig(Strict):
    """The keys of ``snakemake --config``."""

    fidelity: Literal["smoke", "standard", "paper"] = "standard"
    experiment: Any = None
    shards: int = Field(default=0, ge=0, le=MAX_SHARDS)


def choose(config: Mapping[str, Any]) -> tuple[str, list[str], int]:
    """Fidelity, experiments and number of shards of ``snakemake --config``.

    If no experiment is requested, those without their trained models are skipped, with a line on
    stderr.

    Raises:
        InputError: a key, fidelity, experiment or number is invalid, an experiment file cannot be
            used, or the requested experiment lacks its trained models.
    """
    chosen = parse(RunConfig, dict(config), "--config")
    names = experiments()
    requested = chosen.experiment
    if requested not in (None, *names):
        raise InputError("experiment", requested, one_of(names, requested) or "none found")
    available = []
    for name in names if requested is None else [requested]:
        try:
            _check_checkpoints(name, chosen.fidelity)
        except MissingModels as error:
            if requested is not None:
                raise
            print(f"snakemake: without {name}: {error}", file=sys.stderr)
        else:
            available.append(name)
    return chosen.fidelity, available, chosen.shards


def _check_checkpoints(name: str, fidelity: str) -> None:
    """Raise MissingModels if an experiment lacks trained models for which no table stands."""
    declared = Declaration.read(name)
    declared.spec.fidelity_changes(fidelity)
    law = declared.spec.law
    declared.resolved(law)
    for row in law.get("checkpoints", {}).values():
        if "table" not in row:
            checkpoint(row["file"])
