"""Experiments of a run of Snakemake, from its configuration. No JAX."""

import sys
from collections.abc import Mapping
from typing import Any

from sims.base.errors import InputError, one_of
from sims.base.places import experiments
from sims.study.declaration import FIDELITIES, Declaration
from sims.study.referenced_files import MissingModels, checkpoint

MAX_SHARDS = 10_000


def choose(config: Mapping[str, Any]) -> tuple[str, list[str], int]:
    """Fidelity, experiments and number of shards of ``snakemake --config``.

    If no experiment is requested, those without their trained models are skipped, with a line on
    stderr.

    Raises:
        InputError: a key, fidelity, experiment or number is invalid, an experiment file cannot be
            used, or the requested experiment lacks its trained models.
    """
    keys = ("fidelity", "experiment", "shards")
    for key in config:
        if key not in keys:
            raise InputError("--config", key, one_of(keys, key))
    fidelity = config.get("fidelity", "standard")
    if fidelity not in FIDELITIES:
        raise InputError("fidelity", fidelity, one_of(FIDELITIES, fidelity))
    shards = config.get("shards", 0)
    if type(shards) is not int or not 0 <= shards <= MAX_SHARDS:
        raise InputError("shards", shards, f"an integer from 0 to {MAX_SHARDS}")
    names = experiments()
    experiment = config.get("experiment")
    if experiment not in (None, *names):
        raise InputError("experiment", experiment, one_of(names, experiment) or "none found")
    if experiment is not None:
        _check_checkpoints(experiment, fidelity)
        return fidelity, [experiment], shards
    chosen = []
    for name in names:
        try:
            _check_checkpoints(name, fidelity)
        except MissingModels as error:
            print(f"snakemake: without {name}: {error}", file=sys.stderr)
        else:
            chosen.append(name)
    return fidelity, chosen, shards


def _check_checkpoints(name: str, fidelity: str) -> None:
    """Raise MissingModels if an experiment lacks its trained models."""
    declared = Declaration.read(name)
    declared.spec.fidelity_changes(fidelity)
    law = declared.spec.law
    declared.resolved(law)
    for file in law.get("checkpoints", {}).values():
        checkpoint(file)
