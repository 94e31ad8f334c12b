"""Minutes that the experiments of a complete run took: a table, and the one that the package ships.

``python -m benchmarks.minutes standard`` reads results/standard after ``make reproduce`` on an
otherwise idle machine, and writes the seconds into sims/study/seconds.json.
"""

import json
import sys
from pathlib import Path

from sims.study.timing import TABLE, kept


def main() -> None:
    (fidelity,) = sys.argv[1:]
    home = Path("results", fidelity)
    table = json.loads(TABLE.read_text("utf-8"))
    rows: dict[str, dict[str, float]] = {}
    for file in sorted(home.glob("**/.seconds/*.json")):
        folder, step = file.parents[1], file.stem
        if step != "run":
            experiment = "" if folder == home else folder.name
            rows.setdefault(experiment, {})[step] = round(kept(folder, step) or 0.0, 1)
    table[fidelity] = rows
    Path(str(TABLE)).write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", "utf-8")
    for experiment, row in sorted(rows.items(), key=lambda item: -sum(item[1].values())):
        steps = ", ".join(f"{step} {seconds / 60:.1f}" for step, seconds in row.items())
        print(f"{experiment or 'all':16} {sum(row.values()) / 60:5.1f} core minutes ({steps})")


if __name__ == "__main__":
    main()
