"""``sims sweep``: one problem at many values of its fields."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from sims.base.errors import InputError
from sims.base.files import digest
from sims.cli.listing import after_result, print_table
from sims.cli.options import check_kind, netcdf_file, part_of
from sims.study.python_parts import unread
from sims.study.sweepfile import read_points, unread_code
from sims.study.sweeping import Sweep
from sims.theory import FEW_KEYS

MAX_ROWS = 40
"""Maximum number of points printed; the file has all."""


def sweep(
    spec: str,
    sets: list[str],
    simulation: dict[str, Any],
    output_path: Path | None,
    shard: str | None,
    shards: int | None,
    snakemake: list[str],
    allow_code: bool,
    dry: bool,
) -> None:
    """Run one part of a sweep, or the sweep; the sweep writes its file and its figure.

    Args:
        spec: file of the problem or sweep.
        sets: axes that are added, or replace the file's.
        simulation: settings that override the file's.
        output_path: path of the output; None is results/sweeps/NAME.nc.
        shard: ``i/N``, the part to compute.
        shards: number of parts to compute by snakemake.
        snakemake: Snakemake's options.
        allow_code: allow the Python files that the problem names.
        dry: print the plan only.

    Raises:
        InputError: options do not go together.
    """
    check_kind(spec, "a sweep", "a problem")
    part = _part(shard, shards, snakemake)
    output = netcdf_file(output_path or f"results/sweeps/{Path(spec).stem}.nc")
    if dry:
        print(*_plan(spec, sets, simulation, output), sep="\n")
        return
    run = Sweep(*read_points(spec, sets, simulation, allow_code), output)
    interactive = sys.stderr.isatty()
    if interactive or (part is None and not run.is_covered):
        print(*run.plan(), sep="\n", file=sys.stderr)
    if part is not None:
        run.compute(part, interactive)
    elif shards is None:
        _write(run.finish(interactive), run)
    elif run.is_done():
        print(f"{run.identity}: complete", output, sep="\n")
    else:
        from sims.cli.sharded import run_sharded

        options = _arguments(sets, simulation, allow_code)
        run_sharded([spec, *options], output, shards, run.source_digest, snakemake)


def _part(
    shard: str | None, shards: int | None, snakemake: Sequence[str]
) -> tuple[int, int] | None:
    """Part to compute; None for all. InputError if the options do not go together."""
    if shard is not None and shards is not None:
        raise InputError("--shard, --shards", "both", "one of them")
    if snakemake and shards is None:
        allowed = "one file; snakemake's options only with --shards"
        raise InputError("arguments", " ".join(snakemake), allowed)
    return None if shard is None else part_of("--shard", shard)


def _plan(spec: str, sets: Sequence[str], simulation: dict[str, Any], output: Path) -> list[str]:
    """Lines of a plan, for which no code of the user is run."""
    if lines := unread_code(spec):
        return lines
    run = Sweep(*read_points(spec, sets, simulation, consent=None), output)
    code_lines = unread(point.spec for point in run.points)
    header = f"{spec}: nothing is run or written"
    return [header, *code_lines, *run.plan(), f"output       {output}"]


def _arguments(sets: list[str], simulation: dict[str, Any], allow_code: bool) -> list[str]:
    """Axes, settings and consent as options of the command line."""
    arguments = [f"--set={axis}" for axis in sets]
    for name, value in simulation.items():
        arguments.append(f"--{name.replace('_', '-')}={value}")
    return arguments + ["--allow-code"] * allow_code


def _write(data: xr.Dataset, run: Sweep) -> None:
    """Print the table of a finished sweep, and draw its overview."""
    from sims.figures import overview, save

    print_sweep(data)
    print(run.output)
    figure = run.output.with_suffix(".png")
    with after_result(str(figure)):
        save(overview(data), figure, run.identity, digest(run.output), ["png"])
        print(figure)


def print_sweep(data: xr.Dataset) -> None:
    """Print a finished sweep as a table of points, with theory's gap and where it is rough."""
    fields = [str(k) for k in data.coords if k != "point"]
    frame = (data if data.sizes else data.expand_dims("point")).to_dataframe().reset_index()
    shown = frame[[*fields, "mse", "mse_mcse", "mse_theory"]].head(MAX_ROWS).copy()
    gap = shown["mse"] / shown["mse_theory"] - 1
    shown = shown.map(lambda x: f"{x:.4g}" if isinstance(x, float) else str(x))
    shown["gap"] = gap.map("{:+.1%}".format)
    shown["faults"] = frame["faults"]
    columns = (*fields, "MSE", "± MCSE", "theory", "gap", "faults")
    print_table(columns, shown.replace(["nan", "+nan%"], "–").to_numpy().tolist())
    with after_result("range of theory"):
        _print_range(frame)
    if len(frame) > MAX_ROWS:
        print(f"… and {len(frame) - MAX_ROWS:,} more points in the file")
    if len(frame) > 1:
        _print_least(data, frame, fields)


def _print_least(data: xr.Dataset, frame: pd.DataFrame, fields: Sequence[str]) -> None:
    """Print where the least error without a fault is, and whether that is a border of the grid."""
    usable = frame[(frame["faults"] == "") & frame["mse"].notna()]
    if usable.empty:
        return
    least = usable.sort_values("mse").iloc[0]
    ends = []
    for name in map(str, data.dims):
        axis = data[name].values
        if len(axis) > 1 and axis.dtype.kind in "if" and least[name] in (axis.min(), axis.max()):
            ends.append(name)
    place = ", ".join(f"{name} {least[name]}" for name in fields)
    border = "inside the grid"
    if ends:
        border = f"on the border of the grid in {', '.join(ends)}: it may be less beyond"
    note = "" if "point" in data.dims else f"; {border}"
    print(f"Least MSE: {least['mse']:.4g} ± {least['mse_mcse']:.2g} at {place}{note}.")


def _print_range(frame: pd.DataFrame) -> None:
    """Print at how many points first-order theory is rough, if at any."""
    if "n_third" in frame:
        # Under order auto n_third is missing where theory is exact, and so is the minimum.
        keys = frame[["n_eff_least", "n_third"]].min(axis=1, skipna=False)
        rough = int((keys < FEW_KEYS).sum())
        if rough:
            print(
                f"First-order theory is rough at {rough} of {len(frame)} points, where n_eff or "
                f"n_third is below about {FEW_KEYS}; `theory: {{order: auto}}` uses exact theory."
            )
