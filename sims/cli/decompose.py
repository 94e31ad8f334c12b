"""``sims decompose``: one problem, both roads side by side."""

import json
import math
import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from sims.cli.roads import estimate_terms, predict_terms
from sims.errors import InputError
from sims.experiment import SimulationSpec, TheorySpec
from sims.provenance import machine, versions
from sims.specification import ProblemSpec
from sims.terms import SCALARS
from sims.validation import Strict, parse, read_yaml

MOST_BATCHES = 4096
"""Limit under ``--rel-mcse`` where the file sets none."""
LABELS = {
    "squared_bias": "squared bias",
    "signal_variance": "signal variance, mean of heads",
    "noise_variance": "noise variance, mean of heads",
    "variance": "variance of a head",
    "cross_signal_covariance": "signal covariance of a pair",
    "cross_noise_covariance": "noise covariance of a pair",
    "covariance": "covariance of a pair",
    "ensemble_variance": "variance of the ensemble",
    "mse": "MSE of the ensemble",
    "mean_head_mse": "MSE of a head, mean",
}


class DecomposeSpec(Strict):
    """The file that ``sims decompose`` reads."""

    problem: ProblemSpec
    simulation: SimulationSpec = SimulationSpec()
    theory: TheorySpec = TheorySpec()


def decompose(options: Namespace) -> None:
    """Run both roads on the problem of a file and print them."""
    data = _with_options(read_yaml(options.spec), options)
    spec = parse(DecomposeSpec, data, options.spec)
    problem = spec.problem.build()
    # The first batches beside theory, so that the two compile side by side; they are kept.
    first = spec.simulation.model_copy(update={"rel_mcse": None, "batches": 2})
    with ThreadPoolExecutor(1) as beside:
        begun = beside.submit(estimate_terms, problem, first)
        prediction = predict_terms(problem, spec.theory)
    estimate = estimate_terms(problem, spec.simulation, begun.result(), sys.stderr.isatty())
    outcome = compare(prediction, estimate)
    outcome["settings"] = spec.model_dump(mode="json")
    outcome["provenance"] = {"versions": versions(), **machine()}
    if options.json:
        print(json.dumps(outcome, indent=1, allow_nan=False))
    else:
        _print(outcome)


def compare(prediction: Any, estimate: Any) -> dict[str, Any]:
    """Every scalar term by both roads, as plain numbers (None where there is no number)."""
    rows = {}
    for term in SCALARS:
        theory = float(prediction[term])
        simulated, error = float(estimate[term].mean()), float(estimate[f"{term}_mcse"])
        gap = simulated - theory
        rows[term] = {
            "theory": _number(theory),
            "simulation": _number(simulated),
            "mcse": _number(error),
            "gap": _number(gap),
            "gap_in_mcse": _number(gap / error if error else math.nan),
            "relative_gap": _number(gap / theory if theory else math.nan),
        }
    keys = prediction["n_eff"].values
    attrs = estimate.attrs
    return {
        "terms": rows,
        "n_eff": {
            "mean": _number(keys.mean()),
            "least": _number(keys.min()),
            "by_head": [_number(v) for v in keys.mean(axis=0)],
        },
        "simulation": {
            key: np.asarray(attrs[key]).item()
            for key in ("replicates", "batches", "batches_asked", "stopped", "precision")
        },
    }


def _with_options(data: dict[str, Any], options: Namespace) -> dict[str, Any]:
    """The file with the command line's options in it, so that both are validated alike."""
    given = {"rel_mcse": options.rel_mcse, "seed": options.seed}
    given = {key: value for key, value in given.items() if value is not None}
    simulation = data.get("simulation") or {}
    if not isinstance(simulation, dict):
        raise InputError("simulation", simulation, "a mapping of keys to values")
    if "rel_mcse" in given:
        simulation = {"max_batches": MOST_BATCHES} | simulation
    return {**data, "simulation": simulation | given}


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _print(outcome: dict[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("term", no_wrap=True)
    for name in ("theory", "simulation", "± MCSE", "gap", "gap/MCSE", "gap/theory"):
        table.add_column(name, justify="right", no_wrap=True)
    for term, row in outcome["terms"].items():
        table.add_row(
            LABELS[term],
            _show(row["theory"], ".4g"),
            _show(row["simulation"], ".4g"),
            _show(row["mcse"], ".2g"),
            _show(row["gap"], "+.2g"),
            _show(row["gap_in_mcse"], "+.1f"),
            _show(row["relative_gap"], "+.2%"),
            end_section=term in ("squared_bias", "variance", "covariance", "ensemble_variance"),
            style="bold" if term == "mse" else None,
        )
    keys, run = outcome["n_eff"], outcome["simulation"]
    theory = outcome["settings"]["theory"]["order"]
    # Never narrower than the table: cut columns would lose digits.
    console = Console(highlight=False)
    console.width = max(console.width, 108)
    console.print(table)
    console.print(
        f"{run['replicates']:,} replicates in {run['batches']} batches, {run['precision']}; "
        f"stopped at its {run['stopped']}. Theory: "
        + ("first order in 1/n." if theory == "first" else "exact at this n.")
    )
    console.print(f"Effective keys a head: mean {keys['mean']:.1f}, least {keys['least']:.1f}.")
    if theory == "first" and (keys["least"] or 0) < 50:
        console.print(
            "Below about 50 effective keys the first-order theory is rough: its relative gap "
            "falls like 1/n."
        )
    if outcome["terms"]["covariance"]["theory"] is None:
        console.print("One head: there is no pair, hence no covariance.")


def _show(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
