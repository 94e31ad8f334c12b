"""``sims decompose``: one problem, both roads side by side."""

import json
import math
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.progress import Progress

from sims.cli.listing import print_table
from sims.cli.options import netcdf
from sims.documents import read_yaml
from sims.errors import Uncovered
from sims.problem import EmpiricalDesign
from sims.provenance import machine, versions
from sims.study import sweeping
from sims.study.describing import described
from sims.study.planning import check_covered, cost
from sims.study.planning import described as lines_of
from sims.study.results import write
from sims.study.roads import estimate_terms, predict_terms
from sims.study.schema import SimulationSpec, TheorySpec
from sims.study.specification import Problem
from sims.study.sweepfile import DecomposeSpec, check, with_files, with_options
from sims.terms import HEAD, LABELS, QUERY, SCALARS
from sims.theory import FEW_KEYS
from sims.validation import parse

ORDERS = {"first": "first order in 1/n", "exact": "exact at this n", "none": "not asked for"}
"""What a table's theory is, by ``theory.order``."""


def decompose(
    file: str,
    rel_mcse: float | None,
    seed: int | None,
    as_json: bool,
    output: Path | None,
    dry: bool,
) -> None:
    """Run both roads on the problem of a file, print them, and write them if asked to."""
    output = output and netcdf(output)
    data = with_options(read_yaml(file), rel_mcse, seed)
    spec = parse(DecomposeSpec, with_files(data, Path(file).parent), file)
    check(spec)
    problem = spec.problem.build()
    order, reason = spec.theory.order, uncovered(problem, spec.theory)
    load = cost(spec.problem, problem, spec.simulation)
    design, read = problem.task.design, []
    if isinstance(design, EmpiricalDesign):
        table = Path(spec.problem.design.model_dump()["file"]).name
        read = ["{}: {:,} rows of {} columns".format(table, *design.rows.shape)]
    if dry:
        print(f"{file}: nothing is run or written", *read, sep="\n")
        print(*lines_of([load], spec.simulation), sep="\n")
        print(f"theory       {order}; {reason or 'not estimated'}")
        return
    if reason is not None:
        print(f"theory of order {order}: {reason}; simulation alone", file=sys.stderr)
    # The first batches beside theory, so that the two compile side by side; they are kept.
    first = spec.simulation.model_copy(update={"rel_mcse": None, "batches": 2})
    with ThreadPoolExecutor(1) as beside:
        begun = beside.submit(estimate_terms, problem, first)
        with warnings.catch_warnings():
            # It names variables of the library; the outcome says the same in the file's words.
            warnings.filterwarnings("ignore", "exact theory: ", UserWarning)
            if order == "none" or reason is not None:
                prediction = xr.Dataset(
                    dict.fromkeys(SCALARS, math.nan) | {"n_eff": ((QUERY, HEAD), [[math.nan]])},
                    attrs={"order": "none", "rounding": 0.0},
                )
            else:
                show = sys.stderr.isatty() and order in ("exact", "auto")
                with Progress(
                    console=Console(stderr=True), transient=True, disable=not show
                ) as bar:
                    task = bar.add_task("exact theory", total=1)
                    prediction = predict_terms(
                        problem,
                        spec.theory,
                        lambda done, total: bar.update(task, completed=done, total=total),
                    ).isel(order=0)
    estimate = estimate_terms(problem, spec.simulation, begun.result(), sys.stderr.isatty())
    outcome = compare(prediction, estimate, spec.simulation)
    outcome["theory"]["uncovered"], outcome["read"] = reason, read
    outcome["settings"] = spec.model_dump(mode="json")
    outcome["provenance"] = {"versions": versions(), **machine()}
    if output is not None:
        scalars = sweeping.row(estimate, prediction, order)
        labelled = described(xr.Dataset(scalars), sweeping.MEANS)
        origin = sweeping.origin(spec, "sims decompose", [estimate.attrs])
        write(labelled.assign_attrs(origin), output, f"{output.name} of sims decompose")
    if as_json:
        print(json.dumps(_plain(outcome), indent=1, allow_nan=False))
    else:
        _print(outcome)


def uncovered(problem: Problem, theory: TheorySpec) -> str | None:
    """Why the theory asked for says nothing about a problem, None where it does.

    Raises:
        InputError: the problem cannot be predicted at all.
    """
    try:
        check_covered(problem, theory)
    except Uncovered as error:
        return f"does not cover {error.field} {error.value} (covered: {error.allowed})"
    return None


def compare(
    prediction: xr.Dataset, estimate: xr.Dataset, settings: SimulationSpec
) -> dict[str, Any]:
    """Every scalar term by both roads, as plain numbers (NaN where there is no number).

    Args:
        prediction: the theory's dataset.
        estimate: the simulation's dataset.
        settings: of the simulation.

    Returns:
        ``terms`` (``theory_error``: bound on exact theory's error), the validity numbers ``n_eff``
        and ``n_third`` (first order only), ``theory`` and ``simulation``. Of the latter, ``missed``
        are the terms with mcse > rel_mcse·|term|, but for the ``negligible`` ones of those, which
        do not hold up stopping: |term| + 2·mcse ≤ negligible·MSE.
    """
    rows: dict[str, dict[str, float]] = {}
    for term in SCALARS:
        theory, bound = prediction[term], prediction.get(f"{term}_error", math.nan)
        simulated, error = estimate[term].mean(), estimate[f"{term}_mcse"]
        gap = simulated - theory
        numbers = {
            "theory": theory,
            "theory_error": bound,
            "simulation": simulated,
            "mcse": error,
            "gap": gap,
            "gap_in_mcse": gap / error,
            "relative_gap": gap / theory,
        }
        rows[term] = {key: float(value) for key, value in numbers.items()}
    attrs, order = estimate.attrs, prediction.attrs["order"]
    run: dict[str, Any] = {
        key: np.asarray(attrs[key]).item()
        for key in (
            "replicates",
            "batches",
            "batches_asked",
            "stopped",
            "precision",
            "empty_rate",
            "rounding",
        )
    }
    for key in ("faults", "cautions"):
        run[key] = [*attrs.get(key, []), *prediction.attrs.get(key, [])]
    run |= {"missed": [], "negligible": []}
    for term, row in rows.items():
        size, mcse = abs(row["simulation"]), row["mcse"]
        if settings.rel_mcse is not None and mcse > settings.rel_mcse * size:
            small = size + 2 * mcse <= settings.negligible * rows["mse"]["simulation"]
            run["negligible" if small else "missed"].append(term)
    accuracy = {"order": order, "rounding": prediction.attrs["rounding"]}
    if order == "exact":
        converged = prediction["converged"].values
        accuracy |= {
            "empty_probability": float(prediction["empty_probability"].mean()),
            "rtol": prediction.attrs["rtol"],
            "reached": bool(converged.all()),
            "entries": converged.size,
            "entries_missed": int((~converged).sum()),
            "entries_unknown": int(np.isnan(prediction["noise_covariance"].values).sum()),
            "largest_defect": float(np.abs(prediction["defect"]).max()),
        }
    keys = {name: _keys(prediction.get(name)) for name in ("n_eff", "n_third")}
    return {"terms": rows, **keys, "theory": accuracy, "simulation": run}


def _keys(numbers: xr.DataArray | None) -> dict[str, Any] | None:
    if numbers is None:
        return None
    values = numbers.values
    mean, least = float(values.mean()), float(values.min())
    return {"mean": mean, "least": least, "by_head": values.mean(axis=0).tolist()}


def _plain(value: Any) -> Any:
    """The value as JSON has it: None for what is no number."""
    if isinstance(value, dict):
        return {key: _plain(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [_plain(inside) for inside in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print(outcome: dict[str, Any]) -> None:
    exact = outcome["theory"]["order"] == "exact"
    forms = {
        "theory": ".4g",
        **({"theory_error": ".2g"} if exact else {}),
        "simulation": ".4g",
        "mcse": ".2g",
        "gap": "+.2g",
        "gap_in_mcse": "+.2g",
        "relative_gap": "+.2%",
    }
    names = {
        "theory_error": "± bound",
        "mcse": "± MCSE",
        "gap_in_mcse": "gap/MCSE",
        "relative_gap": "gap/theory",
    }
    print_table(
        ("term", *(names.get(key, key) for key in forms)),
        [
            (LABELS[term], *(_show(row[key], form) for key, form in forms.items()))
            for term, row in outcome["terms"].items()
        ],
        numbers=True,
    )
    print(*_footer(outcome), sep="\n")


def _footer(outcome: dict[str, Any]) -> list[str]:
    """The lines below the table: what was run, how far to trust it, and what to do about it."""
    run, settings = outcome["simulation"], outcome["settings"]["simulation"]
    keys, third, theory = outcome["n_eff"], outcome["n_third"], outcome["theory"]
    said = theory.get("uncovered") or ORDERS[theory["order"]]
    lines = [
        *outcome["read"],
        f"{run['replicates']:,} replicates in {run['batches']} batches, {run['precision']}; "
        f"stopped at its {run['stopped']}. Theory: {said}.",
    ]
    if run["missed"]:
        lines.append(
            f"rel_mcse = {settings['rel_mcse']:g} was not reached in: {_labels(run['missed'])}; "
            f"raise simulation.max_batches ({run['batches_asked']})."
        )
    if run["negligible"]:
        lines.append(
            f"rel_mcse = {settings['rel_mcse']:g} is not asked of what is below "
            f"{settings['negligible']:g} of the MSE (simulation.negligible): "
            f"{_labels(run['negligible'])}."
        )
    effective = (
        f"Effective keys n_eff of a head: mean {_show(keys['mean'], '.1f')}, "
        f"least {_show(keys['least'], '.1f')}"
    )
    if theory["order"] == "exact":
        lines += [f"{effective}.", *_bounds(outcome)]
    elif third is not None:
        lines.append(f"{effective}; n_third: least {_show(third['least'], '.1f')}.")
        few = min(keys["least"], third["least"]) < FEW_KEYS
        if few and outcome["settings"]["theory"]["order"] == "first":
            lines.append(
                "`theory: {order: auto}` in the file takes exact theory if it is affordable."
            )
    rounding = f"Rounding, as a share of a term: up to {_show(run['rounding'], '.1g')}"
    known = theory["order"] != "none"
    of_theory = f" (simulation), {_show(theory['rounding'], '.1g')} (theory)" if known else ""
    lines.append(f"{rounding}{of_theory}.")
    if run["empty_rate"] and (counted := theory.get("empty_probability")) is not None:
        lines.append(f"No key in reach, by theory: in {counted:.2g} of all cases.")
    lines += [f"Note: {caution}." for caution in run["cautions"]]
    lines += [f"No evidence: {fault}." for fault in run["faults"]]
    if outcome["settings"]["problem"]["heads"]["count"] == 1:
        lines.append("One head: there is no pair, hence no covariance.")
    return lines


def _bounds(outcome: dict[str, Any]) -> list[str]:
    """What exact theory says of its own error."""
    theory, mse = outcome["theory"], outcome["terms"]["mse"]["theory"]
    lines = []
    if theory["entries_unknown"]:
        lines.append(
            f"Exact theory has no value in {theory['entries_unknown']} of {theory['entries']} "
            "entries (query, head, head), hence none for their average."
        )
    elif mse:
        errors = [row["theory_error"] for row in outcome["terms"].values()]
        lines.append(f"Bound on theory's error: up to {np.nanmax(errors) / mse:.2g} of the MSE.")
    if not theory["reached"]:
        lines.append(
            f"theory.rtol = {theory['rtol']:g} was not reached in {theory['entries_missed']} of "
            f"{theory['entries']} entries (query, head, head): judge gaps by the bound, or make "
            "heads.bandwidth wider; a larger theory.rtol only ends sooner."
        )
    return lines


def _labels(names: list[str]) -> str:
    return ", ".join(LABELS[name].split(",")[0] for name in names)


def _show(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "–"
