"""The smoke run held against a frozen one: moments of every variable, arrays, and verdicts.

``python -m tests.golden`` compares after ``make reproduce FIDELITY=smoke``; with ``--freeze`` it
writes the files anew. ``map.csv`` lists what a removed part carried, with the reason. On the kind
of processor that froze it a number may be off by 1e-12 of its variable's largest magnitude;
elsewhere theory by 1e-9 and simulation, partly of single precision, by 1e-5. Theory's stated errors
are differences of nearly equal numbers, and may be off by 1e-4 of the largest.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from sims.study import load_experiment

FOLDER = Path(__file__).parent
SMOKE = Path("results/smoke")
WHOLE = ("collapse", "kq_svd")
LARGEST = 4000
"""Numbers of a variable that is kept as a whole."""
KEY = ["experiment", "road", "variable"]
ROW = ["experiment", "claim", "regime"]


def processor() -> str:
    """Model and width of vectors of this machine's processor."""
    text = (
        Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    )
    model = next((line.split(": ")[1] for line in text.splitlines() if "model name" in line), "")
    return f"{model}, {'avx512' if 'avx512f' in text else 'avx2' if 'avx2' in text else 'other'}"


def numbers() -> dict[tuple[str, str, str], np.ndarray]:
    """Every numeric variable of the smoke run, flat, by experiment, road and name."""
    found = {}
    for path in sorted(SMOKE.glob("*/*.nc")):
        with xr.open_dataset(path, engine="h5netcdf") as data:
            for name, values in data.data_vars.items():
                if values.dtype.kind in "bif":
                    flat = values.transpose(*sorted(values.dims)).values.ravel().astype(float)
                    found[path.parent.name, path.stem, str(name)] = flat
    return found


def moments(values: np.ndarray) -> dict[str, float]:
    """Count, mean, root mean square, largest magnitude, and a mean that depends on the order."""
    known = values[np.isfinite(values)]
    if not known.size:
        return {
            "count": values.size,
            "finite": 0,
            "mean": 0.0,
            "rms": 0.0,
            "order": 0.0,
            "largest": 0.0,
        }
    waves = np.cos(np.arange(values.size))[np.isfinite(values)]
    return {
        "count": values.size,
        "finite": known.size,
        "mean": known.mean(),
        "rms": np.sqrt(np.mean(known**2)),
        "order": np.mean(known * waves),
        "largest": np.abs(known).max(),
    }


def verdicts() -> pd.DataFrame:
    """Verdict and effect of every row of the smoke run's ledger."""
    return pd.DataFrame(json.loads((SMOKE / "ledger.json").read_text(encoding="utf-8")))[
        [*ROW, "verdict", "effect"]
    ]


def freeze() -> None:
    """Write moments, arrays, and the verdicts of the published and of the smoke run.

    Effects of identities are units of rounding, and are left out.
    """
    found = numbers()
    table = pd.DataFrame(
        [dict(zip(KEY, key, strict=True)) | moments(v) for key, v in found.items()]
    )
    table.to_csv(FOLDER / "moments.csv", index=False)
    kept = {"/".join(k): v for k, v in found.items() if k[0] in WHOLE and v.size <= LARGEST}
    np.savez_compressed(FOLDER / "arrays.npz", processor=processor(), **kept)
    published = pd.read_json("results/published/ledger.json")
    published[["low", "high"]] = published["interval"].tolist()
    both = published[[*ROW, "effect", "low", "high", "verdict"]].merge(
        verdicts(), on=ROW, suffixes=("", "_smoke")
    )
    experiments = (load_experiment(name) for name in dict.fromkeys(both["experiment"]))
    identities = [
        (e.name, c.id, c.regime) for e in experiments for c in e.claims if c.test == "identity"
    ]
    both.loc[pd.MultiIndex.from_frame(both[ROW]).isin(identities), "effect_smoke"] = np.nan
    both.to_csv(FOLDER / "ledger.csv", index=False)


def compare() -> list[str]:
    """A line for everything that differs and is not listed in map.csv."""
    with (FOLDER / "map.csv").open(encoding="utf-8") as file:
        gone = {tuple(row[:3]) for row in csv.reader(file)}
    frozen = np.load(FOLDER / "arrays.npz")
    same, found, lines = str(frozen["processor"]) == processor(), numbers(), []

    def differ(key: tuple[str, str, str], old: np.ndarray, new: np.ndarray, largest: float) -> bool:
        share = 1e-12 if same else 1e-9 if key[1] == "theory" else 1e-5
        if key[1] == "theory" and key[2].endswith(("_error", "defect")):
            share = 1e-4
        return old.shape != new.shape or not np.allclose(
            new, old, rtol=0, atol=share * largest, equal_nan=True
        )

    table = pd.read_csv(FOLDER / "moments.csv")
    for row in table.to_dict("records"):
        key = (row["experiment"], row["road"], row["variable"])
        if key in gone:
            continue
        if key not in found:
            lines.append(f"{'/'.join(key)}: not there")
            continue
        new = moments(found[key])
        names = ["count", "finite", "mean", "rms", "order", "largest"]
        old = np.array([row[name] for name in names])
        if differ(key, old, np.array([new[name] for name in names]), row["largest"]):
            lines.append(f"{'/'.join(key)}: {new}, frozen {dict(zip(names, old, strict=True))}")
    for name in frozen.files:
        key = tuple(name.split("/"))
        if len(key) == 3 and key in found and key not in gone:
            largest = float(np.nanmax(np.abs(frozen[name]), initial=0.0))
            if differ(key, frozen[name], found[key], largest):
                lines.append(f"{name}: an array that differs")
    old = pd.read_csv(FOLDER / "ledger.csv").set_index(ROW)
    rows = old.join(verdicts().set_index(ROW), suffixes=("", "_new"), how="outer")
    known = rows["effect_smoke"].notna()
    close = np.isclose(rows["effect_new"], rows["effect_smoke"], 1e-6, 1e-9) | ~known
    moved = ~close & same | (rows["verdict_new"] != rows["verdict_smoke"])
    lines += [", ".join(key) for key in rows.index[moved] if key not in gone]
    return [*lines, f"smoke run: {len(table)} variables, {len(old)} rows, {len(lines)} differences"]


def main(arguments: list[str]) -> int:
    """Compare, or freeze; 1 if something differs."""
    if arguments == ["--freeze"]:
        freeze()
        return 0
    lines = compare()
    print(*lines, sep="\n")
    return len(lines) > 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
