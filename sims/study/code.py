"""What each step of the pipeline reads: files of code, and its part of the experiment file.

Both are inputs of the Snakemake rules, which compare contents: restyling a figure re-runs no
simulation, editing the engine does. Checkpoints and provenance carry the digest of the same files.
The Snakefile imports this module, so it needs nothing but the standard library and PyYAML.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sims.documents import read_yaml
from sims.errors import InputError, one_of
from sims.places import place
from sims.study.located import contents, sources

PACKAGE = Path(__file__).parents[1]
EXPERIMENTS = "experiments"
"""The folder of the experiments: see :mod:`sims.places`."""
FIDELITIES = ("smoke", "standard", "paper")
CONFIG = ("fidelity", "experiment", "shards")
"""What ``snakemake --config`` may say."""
MOST_SHARDS = 10_000
_PROBLEM = (
    "problem", "attention/low_rank.py", "weights", "checks.py", "threefry.py", "normals.py",
    "terms.py", "runtime.py", "estimates.py", "learning.py", "diversity.py", "weighting.py",
)  # fmt: skip
_STUDY = (
    "study/schema.py", "kinds.py", "study/specification.py", "study/experiment.py",
    "study/grid.py", "study/roads.py", "study/population.py", "study/own_parts.py",
    "study/located.py",
)  # fmt: skip
_ROOMS: dict[str, tuple[str, ...]] = {
    "simulate": (*_PROBLEM, *_STUDY, "attention", "montecarlo", "simulation", "study/units.py",
                 "study/stacking.py"),
    "predict": (*_PROBLEM, *_STUDY, "theory"),
    "judge": ("judgement", "kinds.py", "runtime.py", "effects.py", "estimates.py", "terms.py",
              "diversity.py", "weighting.py", "study/judging.py", "study/results.py",
              "study/stacking.py"),
    "plot": ("figures", "report/captions.py", "report/text.py", "effects.py",
             "estimates.py", "terms.py", "diversity.py", "weighting.py", "study/results.py",
             "study/stacking.py"),
    "audit": ("audit", "judgement", "kinds.py", "effects.py", *_PROBLEM, "montecarlo",
              "simulation", "theory", "study/specification.py", "study/own_parts.py",
              "study/located.py"),
    "ledger": ("judgement", "kinds.py", "runtime.py", "papers.py", "effects.py", "estimates.py"),
    "report": ("report", "papers.py", "kinds.py", "formulas.py"),
}  # fmt: skip
"""Step to the files and folders of this package that decide its result."""
STEPS = tuple(_ROOMS)
_OWN = {
    "simulate": ("simulate.py",),
    "predict": ("predict.py",),
    "judge": ("effects.py",),
    "plot": ("effects.py", "figure.py", "caption.md"),
}
"""Step to the files of an experiment's folder that it runs or fills in, beside ``<step>_*.py`` and
the modules of the folder that these import."""
_PARTS: dict[str, tuple[str, ...]] = {
    "simulate": ("problem", "grid", "simulation", "settings"),
    "predict": ("problem", "grid", "theory", "settings"),
    "judge": ("settings", "claims", "paper"),
    "plot": ("settings", "title"),
}
"""Step to the keys of the experiment file that it reads."""


def files(step: str, experiment: Path | None = None) -> list[str]:
    """The files of code behind a step, sorted.

    Args:
        step: simulate, predict, judge, plot, audit, ledger or report.
        experiment: folder of the experiment, for the four steps that have one.
    """
    paths: set[Path] = set()
    for room in _ROOMS[step]:
        path = PACKAGE / room
        inside = (p for kind in ("*.py", "*.cc", "*.h", "*.j2") for p in path.rglob(kind))
        paths |= set(inside) if path.is_dir() else {path} if path.is_file() else set()
    if experiment is not None:
        own = {p for name in _OWN.get(step, ()) if (p := experiment / name).is_file()}
        own |= set(experiment.glob(f"{step}_*.py"))
        paths |= {p for one in own for p in (sources(one) if one.suffix == ".py" else [one])}
    here = Path.cwd()
    return sorted(str(p.relative_to(here)) if p.is_relative_to(here) else str(p) for p in paths)


def part(step: str, experiment: Path, fidelity: str) -> str:
    """The part of the experiment file that a step reads, as JSON: prose of others is left out."""
    whole, changes = _file(experiment, fidelity)
    keys = _PARTS.get(step, ())
    chosen: dict[str, Any] = {key: whole.get(key) for key in keys}
    chosen["fidelity"] = {k: v for k, v in changes.items() if k in keys}
    if found := contents(chosen, experiment):
        chosen["files"] = found
    if step == "predict":
        # It decides which problems a population holds, and where learning starts.
        chosen["seed"] = [(p.get("simulation") or {}).get("seed") for p in (whole, changes)]
    if step == "simulate" and decides(whole, changes):
        # Their margins, and how many there are of a paper, say when sampling may stop.
        chosen |= {"claims": _without_prose(whole), "paper": whole.get("paper")}
    return json.dumps(chosen, sort_keys=True, default=str)


def digest(step: str, experiment: Path, fidelity: str) -> str:
    """Hash of all that a step of an experiment depends on, but for its input files."""
    return _hash(code(step, experiment), part(step, experiment, fidelity))


def code(step: str, experiment: Path | None) -> str:
    """Hash of the code alone that a step runs, of an experiment if it is of one."""
    texts = [Path(path).read_text(encoding="utf-8") for path in files(step, experiment)]
    return _hash(*texts)


def decides(whole: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    """Whether an experiment samples until its claims are decided, for which it needs theory.

    Args:
        whole: the experiment file.
        changes: those of the fidelity.
    """
    parts = [part.get("simulation") for part in (changes, whole)]
    rules = [p["decide"] for p in parts if isinstance(p, Mapping) and "decide" in p]
    return bool(rules) and rules[0] != "no"


def choose(config: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The fidelity and the experiments that ``snakemake --config`` asks for.

    Raises:
        InputError: an unknown key, fidelity or experiment, or an experiment file, or one that it
            names, that cannot be read.
    """
    for key in config:
        if key not in CONFIG:
            raise InputError("--config", key, one_of(CONFIG, key))
    fidelity = config.get("fidelity", "standard")
    if fidelity not in FIDELITIES:
        raise InputError("fidelity", fidelity, one_of(FIDELITIES, fidelity))
    names = sorted(path.parent.name for path in place(EXPERIMENTS).glob("*/experiment.yaml"))
    for name in names:
        check_name(name)
    experiment = config.get("experiment")
    if experiment not in (None, *names):
        raise InputError("experiment", experiment, one_of(names, experiment) or "none found")
    chosen = names if experiment is None else [experiment]
    for name in chosen:
        folder = place(EXPERIMENTS) / name
        contents(list(_file(folder, fidelity)), folder)
    return fidelity, chosen


def shards(config: Mapping[str, Any]) -> int:
    """Into how many jobs ``snakemake --config`` cuts every simulation; 0 where it does not say.

    Raises:
        InputError: it is no such number.
    """
    count = config.get("shards", 0)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_SHARDS:
        raise InputError("shards", count, f"a whole number, 0 to {MOST_SHARDS}")
    return count


def check_name(name: str) -> None:
    """Raise InputError unless a name of an experiment is safe in shells and paths."""
    if not re.fullmatch(r"\w+", name, re.ASCII):
        raise InputError("folder of an experiment", name, "letters, digits and _")


def needs_theory(name: str, fidelity: str) -> list[str]:
    """The predictions' file, if the simulation of that experiment reads it to see what is open."""
    adaptive = decides(*_file(place(EXPERIMENTS) / name, fidelity))
    return [f"results/{fidelity}/{name}/theory.nc"] if adaptive else []


def _file(experiment: Path, fidelity: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The experiment file and the changes of a fidelity, of the shape that this module needs."""
    path = experiment / "experiment.yaml"
    whole = read_yaml(path)
    fidelities, claims = whole.get("fidelities") or {}, whole.get("claims") or []
    changes = fidelities.get(fidelity) or {} if isinstance(fidelities, dict) else fidelities
    if not isinstance(changes, dict):
        raise InputError(f"{path}: fidelities", changes, "a mapping of keys to values")
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise InputError(f"{path}: claims", claims, "a list of mappings")
    return whole, changes


def accelerated() -> bool:
    """Whether JAX is installed for a GPU or TPU, on which simulations then take turns."""
    return any(map(find_spec, ("jax_cuda12_plugin", "jax_cuda13_plugin", "libtpu")))


def _without_prose(whole: Mapping[str, Any]) -> list[Any]:
    claims, prose = whole.get("claims") or [], ("statement", "formula", "seen_before")
    return [{k: v for k, v in c.items() if k not in prose} for c in claims]


def _hash(*parts: str) -> str:
    whole = hashlib.sha256()
    for text in parts:
        whole.update(hashlib.sha256(text.encode()).digest())
    return whole.hexdigest()[:16]
