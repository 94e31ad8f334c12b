"""``sims sweep``: a problem of one's own at many values of its fields."""

import os
import sys
from pathlib import Path
from typing import Any

import xarray as xr
from joblib import Parallel, delayed

from sims.cli.listing import print_table
from sims.cli.options import part_of, writable
from sims.errors import InputError
from sims.files import digest
from sims.runtime import host_devices
from sims.study.sweepfile import read_sweep
from sims.study.sweeping import Run
from sims.theory import FEW_KEYS

MOST_ROWS = 40
"""Points that are printed; more are in the file alone."""


def sweep(
    spec: str,
    sets: list[str],
    rel_mcse: float | None,
    seed: int | None,
    given: Path | None,
    shard: str | None,
    shards: int,
    dry: bool,
) -> None:
    """Run a sweep, or one shard of it, and write its file and its figure."""
    read = spec, sets, rel_mcse, seed
    output = writable(given or f"results/sweeps/{Path(spec).stem}.nc")
    if output.suffix != ".nc":
        raise InputError("--output", str(output), "a file whose name ends in .nc")
    part = None if shard is None else part_of("--shard", shard)
    run = Run(read_sweep(*read), output)
    plan = run.plan()
    if dry:
        print(f"{spec}: nothing is run or written")
        print(*plan, f"output       {output}", sep="\n")
        return
    if run.looked_at[1] or sys.stderr.isatty():
        print(*plan, sep="\n", file=sys.stderr)
    if part is not None:
        run.part(*part, sys.stderr.isatty())
        return
    if shards > 1:
        os.environ["SIMS_HOST_DEVICES"] = str(max(1, host_devices() // shards))
        parts = [(index, shards) for index in range(1, shards + 1)]
        Parallel(n_jobs=shards)(delayed(_compute)(read, output, part) for part in parts)
    data = run.whole(sys.stderr.isatty())
    from sims.figures import overview, save

    save(overview(data), output.with_suffix(".png"), run.whose, digest(output))
    _print(data)
    print(output, output.with_suffix(".png"), sep="\n")


def _compute(read: tuple[Any, ...], output: Path, part: tuple[int, int]) -> None:
    """A part of a sweep, in a process of its own on its share of the cores."""
    Run(read_sweep(*read), output).part(*part)


def _print(data: xr.Dataset) -> None:
    fields = [str(k) for k in data.coords if k != "point"]
    frame = (
        data.to_dataframe().reset_index()
        if data.sizes
        else data.expand_dims("point").to_dataframe()
    )
    shown = frame[[*fields, "mse", "mse_mcse", "mse_theory"]].head(MOST_ROWS).copy()
    gap = shown["mse"] / shown["mse_theory"] - 1
    shown = shown.map(lambda x: f"{x:.4g}" if isinstance(x, float) else str(x))
    shown["gap"] = gap.map("{:+.1%}".format)
    shown["faults"] = frame["faults"]
    columns = (*fields, "MSE", "± MCSE", "theory", "gap", "no evidence")
    print_table(columns, shown.replace(["nan", "+nan%"], "–").to_numpy().tolist())
    if "n_third" in frame:
        # Under order auto n_third is missing where theory is exact, and so is the least of the two.
        keys = frame[["n_eff_least", "n_third"]].min(axis=1, skipna=False)
        rough = int((keys < FEW_KEYS).sum())
        if rough:
            print(
                f"First-order theory is rough at {rough} of {len(frame)} points, where n_eff or "
                f"n_third is below about {FEW_KEYS}: `theory: {{order: auto}}` takes exact theory."
            )
    if len(frame) > MOST_ROWS:
        print(f"… and {len(frame) - MOST_ROWS:,} more points in the file")
