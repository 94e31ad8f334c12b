"""``sims sweep``: a problem of one's own at many values of its fields."""

import sys
from pathlib import Path

import xarray as xr

from sims.cli.listing import print_table
from sims.cli.options import part_of, writable
from sims.errors import InputError
from sims.files import digest
from sims.study.own_parts import unread
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
    parts: tuple[str | None, int | None, int | None],
    snakemake: list[str],
    allow_code: bool,
    dry: bool,
) -> None:
    """Run a sweep, or one shard of it, or gather shards, and write its file and its figure.

    Args:
        spec: the file; with it ``sets``, ``rel_mcse`` and ``seed`` say what is swept.
        sets: axes.
        rel_mcse: precision.
        seed: of the simulation.
        given: the output.
        parts: ``--shard``, ``--gather`` and ``--shards``, of which one is given at most.
        snakemake: its options, under ``--shards``.
        allow_code: whether Python files that the problem names may be run.
        dry: only say what would be done.
    """
    shard, gather, shards = parts
    if sum(each is not None for each in parts) > 1:
        raise InputError("--shard, --gather, --shards", "several", "one of them")
    if snakemake and shards is None:
        raise InputError("arguments", " ".join(snakemake), "one file; snakemake's under --shards")
    output = writable(given or f"results/sweeps/{Path(spec).stem}.nc")
    if output.suffix != ".nc":
        raise InputError("--output", str(output), "a file whose name ends in .nc")
    part, count = (1, gather or shards or 1) if shard is None else part_of("--shard", shard)
    allowed = None if dry else allow_code
    run = Run(read_sweep(spec, sets, rel_mcse, seed, allowed), output, count)
    plan, told = run.plan(), sys.stderr.isatty()
    if dry:
        own = unread(point.spec for point in run.sweep.points)
        print(f"{spec}: nothing is run or written", *own, *plan, f"output       {output}", sep="\n")
        return
    if told or (shard is None and any(each.uncovered for each in run.classes)):
        print(*plan, sep="\n", file=sys.stderr)
    if shard is not None:
        run.compute(part, told)
        return
    if shards is not None:
        from sims.cli.sharded import run_sharded

        options = *(("set", axis) for axis in sets), ("rel-mcse", rel_mcse), ("seed", seed)
        same = [f"--{name}={value}" for name, value in options if value is not None]
        same += ["--allow-code"] * allow_code
        if run.is_done():
            print(f"{run.whose}: complete", output, sep="\n")
        else:
            run_sharded([spec, *same], output, shards, run.made, snakemake)
        return
    data = run.whole(None if gather else run.compute(progress=told))
    from sims.figures import overview, save

    save(overview(data), output.with_suffix(".png"), run.whose, digest(output))
    _print(data)
    print(output, output.with_suffix(".png"), sep="\n")


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
