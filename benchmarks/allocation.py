"""Replicates that adaptive and equal allocation take to decide an experiment's claims.

``python -m benchmarks.allocation NAME …`` replays both rules of :mod:`sims.study.adaptive` on the
batches that runs have stored, and simulates only what is not stored yet: a point's first batches
are the same whatever rule asked for them. Needs the experiment's predictions (``sims predict``).
Under the equal rule every point of an experiment gets as many batches as its neediest one. The
last row is of all points of all experiments given as many replicates as the neediest of them.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sims.study import runner
from sims.study.code import FIDELITIES
from sims.study.experiment import load_experiment
from sims.study.judging import effects_of, judge
from sims.study.results import Results

RULES = ("adaptive", "equal")


def spent(name: str, fidelity: str, rule: str) -> tuple[int, int, int]:
    """Batches and replicates in all under a rule, and how many verdicts stay open."""
    home = Path("results", fidelity, name)
    output = home / f"{rule}.nc"
    experiment = load_experiment(name, fidelity, decide=rule)
    try:
        runner.simulate(experiment, output, home / "theory.nc")
        results = Results.load(output, home / "theory.nc", experiment.settings, experiment.identity)
    finally:
        output.unlink(missing_ok=True)
    verdicts = judge(experiment, results, effects_of(experiment, results))
    batches = sum(results.batches(point) for point in results.points)
    replicates = sum(results.replicates_at(point) for point in results.points)
    return batches, replicates, sum(v.verdict == "inconclusive" for v in verdicts)


def main() -> None:
    """Print a table, a row an experiment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.allocation", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--fidelity", default="standard", choices=FIDELITIES)
    options = parser.parse_args()
    columns = ("experiment", "points", "adaptive", "equal", "equal/adaptive", "open verdicts")
    table, sums, grid, most = Table(*columns, title="Monte Carlo replicates"), [0, 0], 0, 0
    for name in options.names:
        points = len(load_experiment(name, options.fidelity).points)
        found = {rule: spent(name, options.fidelity, rule) for rule in RULES}
        (few, taken, left), (many, other, left_too) = (found[rule] for rule in RULES)
        sums = [sums[0] + taken, sums[1] + other]
        grid, most = grid + points, max(most, other // points)
        table.add_row(
            name,
            str(points),
            f"{taken:,} ({few} batches)",
            f"{other:,} ({many})",
            f"{other / taken:.1f}",
            f"{left}, {left_too}",
        )
        print(f"{name}: {other / taken:.2f}", file=sys.stderr)
    for row, other in (("all", sums[1]), ("all points alike", grid * most)):
        table.add_row(row, str(grid), f"{sums[0]:,}", f"{other:,}", f"{other / sums[0]:.1f}", "")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
