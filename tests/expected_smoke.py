"""The smoke run's verdicts and effects, held against those of a committed file; its words.

``python -m tests.expected_smoke`` compares, ``python -m tests.expected_smoke --renew`` writes the
file anew, after ``make reproduce FIDELITY=smoke``.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sims.judgement import read_ledger
from sims.study.describing import FIELDS, read_variables, words
from sims.study.experiment import EXPERIMENTS, experiments, load_experiment
from sims.study.judging import chosen, effects_of
from sims.study.results import Results

FOLDER = Path("results", "smoke")
FILE = Path(__file__).with_suffix(".json")
ERRORS = 4
"""Joint Monte Carlo standard errors that a mean of effects may be off."""
DETERMINISTIC = 1e-5
"""The same of effects that are not sampled, relative where they are above 1."""


def found(names: Iterable[str], folder: Path, ledger: Path) -> dict[str, dict[str, Any]]:
    """Every row's verdict, and number, mean, mean size and mean MCSE of its effects.

    An identity's effects are rounding, which machines do differently: of these the verdict alone.

    Args:
        names: of experiments.
        folder: of their results, one folder each.
        ledger: their verdicts.
    """
    verdicts = {(v.experiment, v.claim, v.regime): v.verdict for v in read_ledger(ledger)}
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        experiment = load_experiment(name, "smoke")
        home = folder / name
        roads = (home / "simulation.nc", home / "theory.nc")
        results = Results.load(*roads, experiment.settings, experiment.identity)
        families = effects_of(experiment, results)
        for claim in experiment.claims:
            row: dict[str, Any] = {"verdict": verdicts[name, claim.id, claim.regime]}
            known = [
                (e.value, abs(e.value), e.error)
                for e in chosen(families[claim.effects], claim)
                if np.isfinite([e.value, e.error]).all()
            ]
            if known and claim.test != "identity":
                mean, size, error = np.mean(known, axis=0).tolist()
                row |= {"effects": len(known), "mean": mean, "size": size, "error": error}
            rows[f"{name}: {claim.id}, {claim.regime}"] = row
    return rows


def differences(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> list[str]:
    """A line for every row that is only in one, or came out otherwise."""
    lines = []
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if before is None or after is None:
            lines.append(f"{key}: only {'expected' if after is None else 'found'}")
            continue
        for field in ("verdict", "effects"):
            if before.get(field) != after.get(field):
                lines.append(f"{key}: {field} {after.get(field)}, expected {before.get(field)}")
        for field in {"mean", "size"} & before.keys() & after.keys():
            one, other = before[field], after[field]
            joint = ERRORS * np.hypot(before["error"], after["error"])
            allowed = max(joint, DETERMINISTIC * max(1.0, abs(one)))
            if not abs(other - one) <= allowed:
                what = "effects" if field == "mean" else "sizes of effects"
                lines.append(
                    f"{key}: mean of {what} {other:.6g}, expected {one:.6g} ± {allowed:.2g}"
                )
    return lines


def unsaid() -> list[str]:
    """A line for every variable or coordinate of the results of which nobody says what it is."""
    lines = []
    for name in experiments():
        own = read_variables(Path(EXPERIMENTS) / name)
        for road in ("simulation", "theory"):
            with xr.open_dataset(FOLDER / name / f"{road}.nc") as data:
                for key, values in data.variables.items():
                    path = str(values.attrs.get("path", key))
                    if path not in FIELDS and words(path, own) is None:
                        lines.append(f"{name}: {road}, {path}: not in variables.yaml")
    return lines


def main(arguments: list[str]) -> int:
    """Compare, or renew the file; 1 if something differs."""
    rows = found(experiments(), FOLDER, FOLDER / "ledger.json")
    if arguments == ["--renew"]:
        FILE.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    lines = differences(json.loads(FILE.read_text(encoding="utf-8")), rows) + unsaid()
    print(*lines, f"smoke run: {len(rows)} rows, {len(lines)} differences", sep="\n")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
