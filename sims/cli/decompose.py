"""``sims decompose``: one problem by theory and by simulation."""

import math
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from pydantic import RootModel

from sims.base.errors import Uncovered
from sims.base.progress import Bar
from sims.base.terms import HEAD, LABELS, QUERY, SCALARS, phrases
from sims.cli.listing import after_result, print_table
from sims.cli.options import check_kind
from sims.problem import EmpiricalDesign
from sims.simulation import estimate
from sims.study.planning import check_covered, cost, plan_lines
from sims.study.provenance import origin
from sims.study.python_parts import unread
from sims.study.schema import SimulationSpec, TheorySpec
from sims.study.specification import Problem, ProblemSpec
from sims.study.sweepfile import DecomposeSpec, parse_file, read_problem, unread_code
from sims.theory import FEW_KEYS, predict

ORDERS = {"first": "first order in 1/n", "exact": "exact at this n", "none": "not requested"}
"""Name of the theory in a table, by ``theory.order``."""
COLUMNS = {
    "theory": ("theory", "{:.4g}"),
    "theory_error": ("± bound", "{:.2g}"),
    "simulation": ("simulation", "{:.4g}"),
    "mcse": ("± MCSE", "{:.2g}"),
    "gap": ("gap", "{:+.2g}"),
    "gap_in_mcse": ("gap/MCSE", "{:+.2g}"),
    "relative_gap": ("gap/theory", "{:+.2%}"),
}
"""Key of a term's numbers to the title and the form of its column in the table."""
RUN = (
    "replicates",
    "batches",
    "batches_asked",
    "stopped",
    "precision",
    "empty_rate",
    "rounding",
)
"""Attributes of a simulation that are printed."""


def decompose(
    file: str,
    simulation: dict[str, Any],
    as_json: bool,
    allow_code: bool,
    dry: bool,
) -> None:
    """Run theory and simulation on the problem of a file, and print their terms."""
    check_kind(file, "a problem")
    if dry and (lines := unread_code(file)):
        print(*lines, sep="\n")
        return
    consent = None if dry else allow_code
    data = read_problem(file, consent)
    if "#" in file:
        data.pop("sweep", None)  # of other sets of heads: sims sweep
    spec = parse_file(DecomposeSpec, data, file, simulation, consent)
    if spec.about and not as_json:
        print(spec.about)
    problem = spec.problem.build()
    reason = _why_uncovered(problem, spec.theory)
    if dry:
        load = cost(spec.problem, problem, spec.simulation)
        print(f"{file}: nothing is run or written", *_tables(spec.problem, problem), sep="\n")
        print(*plan_lines([load], spec.simulation), *unread([spec.problem]), sep="\n")
        print(f"theory       {spec.theory.order}; {reason or 'not estimated'}")
        return
    if reason is not None:
        print(f"theory of order {spec.theory.order}: {reason}; simulation only", file=sys.stderr)
    settings = spec.model_dump(mode="json")
    prediction, result = _run_both(problem, spec, covered=reason is None)
    outcome = compare(prediction, result, spec.simulation, float(problem.task.noise_sd))
    outcome["theory"]["uncovered"] = reason
    outcome["settings"] = settings
    with after_result("rows of the table"):
        outcome["read"] = _tables(spec.problem, problem)
    if as_json:
        with after_result("provenance"):
            outcome["provenance"] = origin()
        print(RootModel[dict[str, Any]](outcome).model_dump_json(indent=1))
    else:
        _print(outcome)


def _why_uncovered(problem: Problem, theory: TheorySpec) -> str | None:
    """Reason why theory does not cover the problem; None if it does."""
    try:
        check_covered(problem, theory)
    except Uncovered as error:
        return f"does not cover {error.field} {error.value} (covered: {error.allowed})"
    return None


def _run_both(
    problem: Problem, spec: DecomposeSpec, covered: bool
) -> tuple[xr.Dataset, xr.Dataset]:
    """Terms by theory (NaN if not requested or not covered) and by simulation."""
    order = spec.theory.order
    simulate = partial(estimate, *problem, spec.simulation.seed, **spec.simulation.estimator)
    sampling = spec.simulation.sampling
    # Exact theory compiles for seconds: the first batches, which are kept, compile meanwhile.
    first = sampling | {"rel_mcse": None, "max_batches": None, "batches": 2}
    slow = covered and order in ("exact", "auto")
    with ThreadPoolExecutor(1) as executor, warnings.catch_warnings():
        future = executor.submit(simulate, **first) if slow else None
        # It names variables of the library; the outcome says the same in the file's words.
        warnings.filterwarnings("ignore", "exact theory: ", UserWarning)
        if covered and order != "none":
            prediction = _predict(problem, spec.theory)
        else:
            unknown = dict.fromkeys(SCALARS, math.nan)
            prediction = xr.Dataset(unknown, attrs={"order": "none", "rounding": 0.0})
    resume = future.result() if future else None
    return prediction, simulate(**sampling, resume=resume, progress=sys.stderr.isatty())


def _tables(spec: ProblemSpec, problem: Problem) -> list[str]:
    """Size of the table that the design reads, from a file or by its name, if it reads one."""
    design = problem.task.design
    if not isinstance(design, EmpiricalDesign):
        return []
    choice = spec.design.model_dump()
    source = Path(choice.get("file") or choice.get("name") or choice["kind"]).name
    return ["{}: {:,} rows of {} columns".format(source, *design.rows.shape)]


def _predict(problem: Problem, theory: TheorySpec) -> xr.Dataset:
    """The terms by theory; exact theory shows how far it is."""
    options, exact = theory.options, theory.order != "first"
    with Bar(exact and sys.stderr.isatty()) as bar:
        if exact:
            task = bar.add_task("exact theory", total=1)
            options["progress"] = lambda completed, total: bar.update(
                task, completed=completed, total=total
            )
        return predict(*problem, **options)


def compare(
    prediction: xr.Dataset, estimate: xr.Dataset, settings: SimulationSpec, noise_sd: float
) -> dict[str, Any]:
    """Scalar terms by both methods, as plain numbers (NaN where there is no number).

    Args:
        prediction: the theory's dataset.
        estimate: the simulation's dataset.
        settings: settings of the simulation.
        noise_sd: σ.

    Returns:
        ``terms`` (``theory_error``: bound on exact theory's error), the validity numbers ``n_eff``
        and ``n_third`` (first order only), ``theory`` and ``simulation``. Without theory n_eff is
        as simulated. Of the latter, ``missed``
        are the terms with mcse > rel_mcse·|term|, but for the ``negligible`` ones of those, which
        do not hold up stopping: |term| + 2·mcse ≤ negligible·MSE.
    """
    numbers = []
    for term in SCALARS:
        error = float(prediction.get(f"{term}_error", math.nan))
        mcse = float(estimate[f"{term}_mcse"])
        numbers.append((float(prediction[term]), error, float(estimate[term].mean()), mcse))
    rows = pd.DataFrame(numbers, SCALARS, ("theory", "theory_error", "simulation", "mcse"))
    rows["gap"] = rows["simulation"] - rows["theory"]
    rows["gap_in_mcse"] = rows["gap"] / rows["mcse"]
    rows["relative_gap"] = rows["gap"] / rows["theory"]
    size = rows["simulation"].abs()
    order = prediction.attrs["order"]
    rough = rows["mcse"] > (settings.rel_mcse or math.inf) * size
    small = size + 2 * rows["mcse"] <= settings.negligible * size["mse"]
    run: dict[str, Any] = {key: np.asarray(estimate.attrs[key]).item() for key in RUN}
    for key in ("faults", "cautions"):
        run[key] = phrases(estimate, key) + phrases(prediction, key)
    run |= {"missed": [*rows.index[rough & ~small]], "negligible": [*rows.index[rough & small]]}
    accuracy = {"order": order, "rounding": prediction.attrs["rounding"]}
    if order == "exact":
        converged = prediction["converged"].values
        accuracy |= {
            "empty_probability": float(prediction["empty_probability"].mean()),
            "rtol": prediction.attrs["rtol"],
            "reached": bool(converged.all()),
            "entries": converged.size,
            "entries_missed": int((~converged).sum()),
            "largest_defect": float(np.abs(prediction["defect"]).max()),
        }
    keys: dict[str, Any] = {"n_third": None}
    if order != "none":
        for name in {"n_eff", "n_third"} & prediction.keys():
            keys[name] = _summarize_keys(prediction[name])
    else:
        squares = np.diagonal(estimate["integrated_noise_covariance"].mean("batch"))
        known = np.where(squares > 0, squares, math.nan)
        keys["n_eff"] = _summarize_keys(xr.DataArray([noise_sd**2 / known], dims=(QUERY, HEAD)))
        keys["n_eff"]["least"] = estimate.attrs.get("least_n_eff", math.nan)
    return {"terms": rows.to_dict("index"), **keys, "theory": accuracy, "simulation": run}


def _summarize_keys(keys: xr.DataArray) -> dict[str, Any]:
    """Mean, least and per-head mean of a number of keys."""
    by_head = keys.mean(QUERY).values.tolist()
    return {"mean": float(keys.mean()), "least": float(keys.min()), "by_head": by_head}


def _print(outcome: dict[str, Any]) -> None:
    """Print the table of terms, and what is to be said of it."""
    exact = outcome["theory"]["order"] == "exact"
    columns = {key: column for key, column in COLUMNS.items() if exact or key != "theory_error"}
    rows = []
    for term, numbers in outcome["terms"].items():
        cells = [_show(numbers[key], form) for key, (_, form) in columns.items()]
        rows.append((LABELS[term], *cells))
    print_table(("term", *(title for title, _ in columns.values())), rows, numbers=True)
    for part, print_part in NOTES.items():
        with after_result(part):
            print_part(outcome)


def _print_size(outcome: dict[str, Any]) -> None:
    """Print the size of the simulation, and which theory the table has."""
    run = outcome["simulation"]
    theory_note = outcome["theory"]["uncovered"] or ORDERS[outcome["theory"]["order"]]
    print(
        f"{run['replicates']:,} replicates in {run['batches']} batches, {run['precision']}; "
        f"stopped on reaching the {run['stopped']}. Theory: {theory_note}."
    )


def _print_faults(outcome: dict[str, Any]) -> None:
    """Print cautions and faults."""
    for kind, word in (("cautions", "Note"), ("faults", "Fault")):
        for text in outcome["simulation"][kind]:
            print(f"{word}: {text}.")


def _print_precision(outcome: dict[str, Any]) -> None:
    """Print which terms missed the requested precision, and why."""
    run = outcome["simulation"]
    settings = outcome["settings"]["simulation"]
    reasons = {
        "missed": f"was not reached; raise simulation.max_batches ({run['batches_asked']})",
        "negligible": f"does not apply below simulation.negligible = {settings['negligible']:g}",
    }
    for kind, reason in reasons.items():
        if run[kind]:
            names = ", ".join(LABELS[name].split(",")[0] for name in run[kind])
            print(f"rel_mcse = {settings['rel_mcse']:g} {reason}: {names}.")


def _print_trust(outcome: dict[str, Any]) -> None:
    """Print the range of theory, and advice where the problem is outside it."""
    theory = outcome["theory"]
    keys = outcome["n_eff"]
    least_keys = keys["least"]
    mean = _show(keys["mean"], "{:.1f}")
    note = f"Effective keys n_eff of a head: mean {mean}, least {_show(least_keys, '{:.1f}')}"
    if (third := outcome["n_third"]) is not None:
        least_keys = min(least_keys, third["least"])
        note += f"; by the third moment, n_third: least {_show(third['least'], '{:.1f}')}"
    if not math.isnan(keys["mean"]):
        print(f"{note}.")
    for table in outcome.get("read", ()):
        print(f"{table}.")
    if theory["order"] == "exact":
        errors = [row["theory_error"] for row in outcome["terms"].values()]
        bound = np.nanmax(errors) / (outcome["terms"]["mse"]["theory"] or math.nan)
        if not (theory["reached"] or bound <= theory["rtol"]):
            print(
                f"theory.rtol = {theory['rtol']:g} was not reached in {theory['entries_missed']} "
                f"of {theory['entries']} entries (query, head, head); judge gaps by the bound, or "
                "increase heads.bandwidth (a larger theory.rtol only stops earlier)."
            )
    elif least_keys < FEW_KEYS and outcome["settings"]["theory"]["order"] == "first":
        print("`theory: {order: auto}` in the file uses exact theory if the cost allows.")


NOTES: dict[str, Callable[[dict[str, Any]], None]] = {
    "size": _print_size,
    "precision": _print_precision,
    "range of theory": _print_trust,
    "faults": _print_faults,
}
"""Name of what is printed below the table of terms, and the function that prints it."""


def _show(value: float, form: str) -> str:
    return form.format(value) if math.isfinite(value) else "–"
