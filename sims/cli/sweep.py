"""``sims sweep``: a problem of one's own at many values of its fields."""

import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import xarray as xr

from sims.cli.listing import table
from sims.cli.options import netcdf
from sims.errors import InputError
from sims.runtime import host_devices
from sims.study.shards import Shard
from sims.study.sweepfile import read_sweep
from sims.study.sweeping import Run

MOST_ROWS = 40
"""Points that are printed; more are in the file alone."""


def sweep(options: Namespace) -> None:
    """Run a sweep, or one shard of it, and write its file and its figure."""
    sweep = read_sweep(options.spec, options.set or [], options.rel_mcse, options.seed)
    output = netcdf(options.output or f"results/sweeps/{Path(options.spec).stem}.nc")
    shard = None if options.shard is None else Shard.parse(options.shard)
    run = Run(sweep, output)
    plan = run.plan()
    if options.dry:
        print(f"{options.spec}: nothing is run or written")
        print(*plan, f"output       {output}", sep="\n")
        return
    if run.uncovered or sys.stderr.isatty():
        print(*plan, sep="\n", file=sys.stderr)
    if shard is not None:
        run.part(shard, sys.stderr.isatty())
        return
    if options.shards > 1:
        _side_by_side(options, options.shards)
    data = run.whole(sys.stderr.isatty())
    from sims.figures import overview, save

    save(overview(data), output.with_suffix(".png"), run.whose)
    _print(data)
    print(output, output.with_suffix(".png"), sep="\n")


def _side_by_side(options: Namespace, count: int) -> None:
    """Run the shards of this command as processes of their own, each on its share of the cores.

    Raises:
        InputError: one failed; its own line says why.
    """
    given = {"--rel-mcse": options.rel_mcse, "--seed": options.seed, "--output": options.output}
    arguments = ["sweep", options.spec]
    for name, value in [*(("--set", one) for one in options.set or []), *given.items()]:
        arguments += [] if value is None else [name, str(value)]
    cores = str(max(1, host_devices() // count))
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "sims", *arguments, "--shard", f"{index}/{count}"],
            env=os.environ | {"SIMS_HOST_DEVICES": cores},
        )
        for index in range(1, count + 1)
    ]
    try:
        failed = [index for index, process in enumerate(running, 1) if process.wait()]
    except BaseException:
        for process in running:
            process.terminate()  # each keeps what it has
        for process in running:
            process.wait()
        raise
    if failed:
        allowed = "shards that end; what they have done is kept, and the same command goes on"
        raise InputError("--shards", f"shard {failed[0]} failed", allowed)


def _print(data: xr.Dataset) -> None:
    fields = [str(k) for k in data.coords if k != "point"]
    frame = (
        data.to_dataframe().reset_index()
        if data.sizes
        else data.expand_dims("point").to_dataframe()
    )
    rows = []
    for _, one in frame.head(MOST_ROWS).iterrows():
        gap = one["mse"] / one["mse_theory"] - 1
        numbers = [_short(one["mse"]), _short(one["mse_mcse"]), _short(one["mse_theory"]),
                   "–" if np.isnan(gap) else f"{gap:+.1%}", one["faults"]]  # fmt: skip
        rows.append((*(_short(one[field]) for field in fields), *numbers))
    table((*fields, "MSE", "± MCSE", "theory", "gap", "no evidence"), rows)
    rough = int(frame["cautions"].str.contains("first-order theory is rough").sum())
    if rough:
        print(
            f"First-order theory is rough at {rough} of {len(frame)} points (`cautions`); "
            "`theory: {order: auto}` takes exact theory if it is affordable."
        )
    if len(frame) > MOST_ROWS:
        print(f"… and {len(frame) - MOST_ROWS:,} more points in the file")


def _short(value: object) -> str:
    if isinstance(value, float):
        return "–" if np.isnan(value) else f"{value:.4g}"
    return str(value)
