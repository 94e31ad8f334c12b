"""Damaged and swapped files: every kind × every damage, by the commands that read them.

``make test-faults`` prints the table. A file is *read* if the command goes on and does not say that
it makes it again; that must never happen.
"""

import hashlib
import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
import xarray as xr
import yaml

from sims.files import write_json
from tests.cli.small import EXPERIMENT, run

SIMULATE = """
from sims.montecarlo import HostReplicates
from sims.study.units import SampledUnit


def draw(draw, scale, batch):
    return {"mse": scale * draw.rng().uniform()}


def units(experiment):
    scales = {"one": experiment.settings["scale"], "two": 2 * experiment.settings["scale"]}
    return {
        name: SampledUnit(HostReplicates(draw, constants=scale), {"size": name})
        for name, scale in scales.items()
    }
"""
PREDICT = """
import xarray as xr


def predict(experiment):
    scales = {"one": experiment.settings["scale"], "two": 2 * experiment.settings["scale"]}
    return {name: xr.Dataset({"mse": scale / 2}) for name, scale in scales.items()}
"""
EFFECTS = """
from sims.effects import of_batches


def effects(results):
    theory = {p: float(results.prediction(p)["mse"]) for p in results.points}
    return {"gaps": [
        of_batches(p, results.estimates[p]["mse"].values / theory[p] - 1, p) for p in theory
    ]}
"""
FIGURE = """
from sims import figures


def figure(results, verdicts):
    drawing, _ = figures.panels(1, 1, width=figures.COLUMN)
    return drawing
"""
OFF_GRID = {k: v for k, v in EXPERIMENT.items() if k not in ("problem", "grid")} | {
    "problem": None,
    "simulation": {"replicates_per_batch": 64, "batches": 16},
}
SCALES = {"near": 1.0, "far": 4.0}
"""Two experiments off the grid, whose points have the same names."""
HOME, OTHER = Path("results/smoke/near"), Path("results/smoke/far")
LATER = Path("results/standard/near")
ROW = {"claim": "c", "experiment": "near", "regime": "all", "first": "supported",
       "verdicts": {"supported": 20}, "turned": False}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with finished runs of two experiments at one fidelity, and of one at another."""
    home, before = tmp_path_factory.mktemp("run"), Path.cwd()
    os.chdir(home)
    for name, scale in SCALES.items():
        own = Path("experiments", name)
        own.mkdir(parents=True)
        fidelities = {"smoke": {}, "standard": {"settings": {"scale": 3 * scale}}, "paper": {}}
        spec = OFF_GRID | {"settings": {"scale": scale}, "fidelities": fidelities}
        (own / "experiment.yaml").write_text(yaml.safe_dump(spec))
        texts = {"simulate.py": SIMULATE, "predict.py": PREDICT, "effects.py": EFFECTS}
        for file, text in texts.items() | {("figure.py", FIGURE), ("caption.md", f"About {name}.")}:
            (own / file).write_text(text)
    own = Path("experiments/grid")  # whose predictions have checkpoints
    own.mkdir()
    (own / "experiment.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    assert run("predict", "grid", "--fidelity", "smoke") == 0
    for name, fidelity in (("near", "smoke"), ("far", "smoke"), ("near", "standard")):
        for step in ("simulate", "predict", "judge", "plot"):
            assert run(step, name, "--fidelity", fidelity) == 0
    for fidelity in ("smoke", "standard"):
        assert run("ledger", "--fidelity", fidelity) == 0
        _more(fidelity)
    assert run("report", "--fidelity", "smoke") == 0
    yield home
    os.chdir(before)


def _more(fidelity):
    """What takes long to make: other seeds judged beside this ledger."""
    folder = Path("results", fidelity)
    ledger = hashlib.sha256((folder / "ledger.json").read_bytes()).hexdigest()
    counts = {"judged": 20, "turned": 0, "inconclusive": 0}
    seeds = {"rows": [ROW], **counts, "redrawn": True, "ledger": ledger}
    write_json(seeds, folder / "seeds.json", f"seeds.json of {fidelity}")


def _checkpoints(home, road):
    return sorted(home.glob(f".points/*-{road}-*.npz"))


KINDS = {
    # kind: the file, others of the kind, the command that reads it, what that writes
    "checkpoint of a simulation": (
        lambda: _checkpoints(HOME, "simulation")[0],
        lambda: [_checkpoints(HOME, "simulation")[1], *_checkpoints(OTHER, "simulation")],
        ("simulate", "near"), HOME / "simulation.nc",
    ),
    "checkpoint of predictions": (
        lambda: _checkpoints(Path("results/smoke/grid"), "theory")[0],
        lambda: _checkpoints(Path("results/smoke/grid"), "theory")[1:],
        ("predict", "grid"), Path("results/smoke/grid/theory.nc"),
    ),
    "simulation.nc": (
        lambda: HOME / "simulation.nc",
        lambda: [OTHER / "simulation.nc", LATER / "simulation.nc", HOME / "theory.nc"],
        ("judge", "near"), HOME / "verdicts.json",
    ),
    "theory.nc": (
        lambda: HOME / "theory.nc",
        lambda: [OTHER / "theory.nc", LATER / "theory.nc", HOME / "simulation.nc"],
        ("judge", "near"), HOME / "verdicts.json",
    ),
    "verdicts.json": (
        lambda: HOME / "verdicts.json",
        lambda: [p / "verdicts.json" for p in (OTHER, LATER)] + [HOME / "theory.nc"],
        ("ledger",), Path("results/smoke/ledger.json"),
    ),
    "ledger.json": (
        lambda: Path("results/smoke/ledger.json"),
        lambda: [Path("results/standard/ledger.json"), HOME / "verdicts.json"],
        ("report",), Path("results/smoke/report.html"),
    ),
    "seeds.json": (
        lambda: Path("results/smoke/seeds.json"),
        lambda: [Path("results/standard/seeds.json"), Path("results/smoke/ledger.json")],
        ("report",), Path("results/smoke/report.html"),
    ),
    "figure.png": (
        lambda: HOME / "figure.png",
        lambda: [OTHER / "figure.png", LATER / "figure.png", HOME / "caption.md"],
        ("report",), Path("results/smoke/report.html"),
    ),
    "caption.md": (
        lambda: HOME / "caption.md",
        lambda: [OTHER / "caption.md", LATER / "caption.md", HOME / "figure.svg"],
        ("report",), Path("results/smoke/report.html"),
    ),
}  # fmt: skip


def _damages(path, others, flips, cuts, rng):
    """(what, the damaged contents) of one file; None stands for a folder in its place."""
    whole = path.read_bytes()
    yield from (("swapped", other.read_bytes()) for other in others)
    yield "emptied", b""
    ends = {1, len(whole) // 2, len(whole) - 1}
    for end in sorted(ends | {rng.randrange(1, len(whole)) for _ in range(cuts)}):
        yield "truncated", whole[:end]
    for bit in rng.sample(range(8 * len(whole)), flips):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        yield "a bit flipped", bytes(flipped)
    for text in (b"{}\n", b"[" * 100_000, b"\x89PNG\r\n\x1a\n", bytes(len(whole)), b"text\n" * 99):
        yield "replaced", text
    yield "replaced", None
    yield "extended", whole + b"\n"
    if path.suffix == ".nc":  # a netCDF file that opens, with a value changed
        with xr.open_dataset(path, engine="h5netcdf") as data:
            changed = data.load().assign(mse=data["mse"] * 1.1)
        changed.to_netcdf("changed.nc", engine="h5netcdf")
        yield "another's values", Path("changed.nc").read_bytes()
    if path.suffix == ".json":
        rows = json.loads(whole)
        first = rows[0] if isinstance(rows, list) else rows
        name = "effect" if "effect" in first else next(iter(first))
        first[name] = 0.125
        yield "another's values", json.dumps(rows).encode()


def _values(path):
    """What a file says, seals apart: the same values may be written at another time."""
    if path.suffix == ".nc":
        with xr.open_dataset(path, engine="h5netcdf") as data:
            return data.load()
    return path.read_bytes()


def _same(one, other):
    return one.identical(other) if isinstance(one, xr.Dataset) else one == other


def _outcome(path, content, command, output, capsys):
    """What a command makes of a damaged file: refused, made again, same, or read."""
    kept = {p: p.read_bytes() for p in {path, output}}
    before = _values(output)
    try:
        path.unlink()
        path.mkdir() if content is None else path.write_bytes(content)
        capsys.readouterr()
        code = run(*command, "--fidelity", "smoke")
        said = capsys.readouterr().err
        if code == 2 and said.count("\n") == 1 and str(path) in said:
            return "refused"
        same = code == 0 and _same(_values(output), before)
        return "made again" if same and f"{path}: got" in said else "read"
    except Exception as error:  # a traceback: noticed, though not in one line
        return type(error).__name__
    finally:
        for p, data in kept.items():
            shutil.rmtree(p) if p.is_dir() else None
            p.write_bytes(data)


@pytest.mark.parametrize(
    ("flips", "cuts"), [(1, 0), pytest.param(40, 8, marks=pytest.mark.faults)], ids=["few", "many"]
)
def test_no_damaged_file_is_read(folder, capsys, flips, cuts):
    rng, counts = random.Random(20), Counter()
    for kind, (place, rivals, command, output) in KINDS.items():
        for what, content in _damages(place(), rivals(), flips, cuts, rng):
            outcome = _outcome(place(), content, command, output, capsys)
            counts[kind, what, outcome] += 1
    outcomes = sorted({outcome for *_, outcome in counts})
    rows = dict.fromkeys((kind, what) for kind, what, _ in counts)
    with capsys.disabled():
        print(f"\n{'file':28}{'damage':18}{'tried':>6}", *(f"{o:>11}" for o in outcomes))
        for row in rows:
            each = [counts[(*row, outcome)] for outcome in outcomes]
            print(f"{row[0]:28}{row[1]:18}{sum(each):6}", *(f"{n:11}" for n in each))
        totals = [sum(counts[(*row, o)] for row in rows) for o in outcomes]
        print(f"{'all':46}{sum(totals):6}", *(f"{n:11}" for n in totals))
    assert set(outcomes) == {"refused", "made again"}


def test_roads_of_different_problems_are_not_compared(folder, capsys):
    """Predicted again after an edit of what is no point's, simulated before it."""
    own = Path("experiments/far/experiment.yaml")
    text = own.read_text()
    kept = {p: p.read_bytes() for p in (own, OTHER / "theory.nc")}
    own.write_text(text.replace("scale: 4.0", "scale: 5.0"))
    try:
        assert run("predict", "far", "--fidelity", "smoke") == 0
        capsys.readouterr()
        assert run("judge", "far", "--fidelity", "smoke") == 2
    finally:
        for path, data in kept.items():
            path.write_bytes(data)
    assert "allowed: the problem of results/smoke/far/simulation.nc" in capsys.readouterr().err
