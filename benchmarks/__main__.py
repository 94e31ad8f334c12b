"""``python -m benchmarks [peers | limit | sparse | efficiency | scale | theory]``: print a table.

Without a name: the engine beside what needs no extra installation, its share of the limit, and
sparse rules beside softmax.
All on one core, the last that the process may use: rates are those of a core.
"""

import argparse
import os
from pathlib import Path

from benchmarks import efficiency, limit, peers, scale, sparse, theory


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    names = ["peers", "limit", "sparse", "efficiency", "scale", "theory"]
    parser.add_argument("which", nargs="?", choices=names)
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of each (default 5)")
    parser.add_argument("--figure", type=Path, help="peers: also draw the table to this file")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before JAX starts its threads
    if options.which in (None, "peers"):
        peers.main(options.repeats, options.which == "peers", options.figure)
    if options.which in (None, "limit"):
        limit.main(options.repeats)
    if options.which in (None, "sparse"):
        sparse.main(options.repeats)
    if options.which == "efficiency":
        efficiency.main(options.repeats)
    if options.which == "scale":
        scale.main(options.repeats)
    if options.which == "theory":
        theory.main(options.repeats)


if __name__ == "__main__":
    main()
