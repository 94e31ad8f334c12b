"""Looking at results again: seals, completeness, contracts. No JAX, and nothing is changed."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sims import files
from sims.errors import InputError
from sims.judgement import Verdict, read_ledger
from sims.study.code import FIDELITIES
from sims.study.contract import contract
from sims.study.experiment import experiments, load_experiment
from sims.study.ledger import judged
from sims.study.results import provenance
from sims.study.workflow import results

SEALED = (".nc", ".json", ".png", ".pdf", ".svg", ".html", ".md")
WHOLE = ("simulation.nc", "theory.nc", "verdicts.json", "caption.md", "figure.pdf", "figure.png",
         "figure.svg")  # fmt: skip
"""What a finished experiment has."""
Contracts = Callable[[str, str], str]
"""From an experiment's name and a fidelity to the contract of today."""
UNSEEN = ("logs", "seeds")
"""Folders of what is no result."""


@dataclass
class Look:
    """What was looked at in one way, and what is wrong.

    Attributes:
        what: the way.
        checked: how many things were looked at.
        wrong: a line each for those that are not as they have to be.
    """

    what: str
    checked: int = 0
    wrong: list[str] = field(default_factory=list)

    def at(self, wrong: str | None) -> None:
        """Count one thing, and say what is wrong about it, if anything is."""
        self.checked += 1
        if wrong is not None:
            self.wrong.append(wrong)


def verify(folder: Path) -> list[Look]:
    """Look at all results in a folder: of a fidelity, published ones, sweeps, or all of these.

    Raises:
        InputError: there is no such folder, or nothing in it.
    """
    if not folder.is_dir():
        raise InputError(str(folder), "no folder", "results, or a folder in it")
    seals, whole = (
        Look("seals: every file is what it says, to the bit"),
        Look("files: none missing"),
    )
    rows = Look("ledger: every claim has its row, and it is the experiment's verdict")
    kept = Look("contracts: nothing was edited after a simulation began, or since")
    now = functools.cache(_now)
    for path, of in _sealed(folder):
        seals.at(_damage(path, of))
    if not seals.checked:
        raise InputError(str(folder), "nothing", "results: make reproduce, first")
    for home in [folder, *sorted(p for p in folder.iterdir() if p.is_dir())]:
        if home.name in FIDELITIES:
            _check_run(home, whole, rows, kept, now)
        elif home.name == "published" and (home / "ledger.json").is_file():
            ledger, fidelity = _published(home / "ledger.json")
            for name in sorted({v.experiment for v in ledger}):
                missing = not (home / f"{name}.png").is_file()
                whole.at(f"{home / name}.png: missing" if missing else None)
            _check_rows(home, ledger, rows)
            for verdict in ledger:
                kept.at(_edited(home, verdict, None, now, fidelity))
    return [look for look in (seals, whole, rows, kept) if look.checked]


def _sealed(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Every result below a folder, and what it has to be of where its place says that."""
    of: dict[Path, str] = {}
    for home in (folder, *folder.iterdir()):
        if home.name in FIDELITIES and home.is_dir():
            of |= dict(results(home))
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part in UNSEEN for part in inside)
        if path.suffix in SEALED and not hidden and not path.is_dir():
            yield path, of.get(path)


def _damage(path: Path, of: str | None) -> str | None:
    try:
        (files.read_json if path.suffix == ".json" else files.read)(path, of)
    except InputError as error:
        return f"{path}: {error.value}"
    return None


def _ledger(path: Path, of: str) -> list[Verdict]:
    """The rows of a ledger; none of one that is damaged, which is known by then."""
    try:
        return read_ledger(path, of)
    except InputError:
        return []


def _published(path: Path) -> tuple[list[Verdict], str]:
    """The rows of a ledger that was published, and the fidelity that it is of."""
    for fidelity in FIDELITIES:
        if rows := _ledger(path, f"ledger.json of {fidelity}"):
            return rows, fidelity
    return [], ""


def _check_run(home: Path, whole: Look, rows: Look, kept: Look, now: Contracts) -> None:
    """A run of one fidelity."""
    begun = [name for name in experiments() if (home / name).is_dir()]
    for path in [home / "ledger.json", *(home / name / one for name in begun for one in WHOLE)]:
        whole.at(None if path.is_file() else f"{path}: missing")
    ledger = _ledger(home / "ledger.json", f"ledger.json of {home.name}")
    _check_rows(home, ledger, rows)
    for name in begun:
        path = home / name / "simulation.nc"
        try:
            alone = {(v.claim, v.regime): v for v in judged(home, name, home.name)}
            began = provenance(path, f"simulation.nc of {name} at {home.name}").get("contract")
        except InputError:
            continue  # missing or damaged, which is said
        for verdict in (v for v in ledger if v.experiment == name):
            same = alone.get((verdict.claim, verdict.regime))
            if same is None or (same.effect, same.p_value) != (verdict.effect, verdict.p_value):
                rows.wrong.append(f"{_place(home, verdict)}: another verdict than its experiment's")
            kept.at(_edited(home, verdict, began, now, home.name))


def _check_rows(home: Path, ledger: list[Verdict], rows: Look) -> None:
    """Whether the claims of the experiments of a ledger are its rows."""
    judged_ones = {v.experiment for v in ledger}
    have = {(v.experiment, v.claim, v.regime) for v in ledger}
    for name in experiments():
        if name not in judged_ones:
            continue
        for claim in load_experiment(name).claims:
            missing = (name, claim.id, claim.regime) not in have
            place = f"{home}: {name}: {claim.id} ({claim.regime})"
            rows.at(f"{place}: no row" if missing else None)


def _edited(
    home: Path, verdict: Verdict, begun: str | None, now: Contracts, fidelity: str
) -> str | None:
    """What is wrong about a verdict's contract: with the run's own, and with today's files."""
    place = _place(home, verdict)
    if verdict.edited or (begun is not None and begun != verdict.contract):
        return f"{place}: edited after the simulation began"
    if verdict.experiment not in experiments():
        return f"{place}: there is no such experiment here"
    if verdict.contract != now(verdict.experiment, fidelity):
        return f"{place}: claims, settings, grid or code of effects edited since it was judged"
    return None


def _now(name: str, fidelity: str) -> str:
    """The contract of an experiment as its files are today."""
    return contract(load_experiment(name, fidelity))


def _place(home: Path, verdict: Verdict) -> str:
    return f"{home}: {verdict.experiment}: {verdict.claim} ({verdict.regime})"
