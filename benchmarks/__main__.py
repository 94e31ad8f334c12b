"""``python -m benchmarks [peers | limit | sparse | latency | efficiency | scale]``.

Without a name: the engine beside what needs no extra installation, its share of the limit, sparse
rules beside softmax, what a user waits for, and which of these ratios moved since the record.
All on one core, the last that the process may use: rates are those of a core.
"""

import argparse
import os

from benchmarks import efficiency, latency, limit, peers, record, scale, sparse

NAMES = ("peers", "limit", "sparse", "efficiency", "scale", "latency")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("which", nargs="?", choices=NAMES)
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of each (default 5)")
    parser.add_argument("--renew", action="store_true", help="write the ratios as the record")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before JAX starts its threads
    which, repeats, ratios = options.which, options.repeats, {}
    if which in (None, "peers"):
        ratios |= peers.main(repeats, which == "peers")
    if which in (None, "limit"):
        ratios |= limit.main(repeats)
    if which in (None, "sparse"):
        sparse.main(repeats)
    if which in (None, "latency"):
        ratios |= latency.main(repeats)
    if which == "efficiency":
        efficiency.main(repeats)
    if which == "scale":
        scale.main(repeats)
    if ratios:
        record.compare(ratios, options.renew)


if __name__ == "__main__":
    main()
