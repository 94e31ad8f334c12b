"""What each step of the pipeline depends on, as a hash.

Snakemake does not notice that an imported module was edited, so the rules carry these hashes as
parameters. A step depends on the modules it imports, directly or through others, and on its part
of the experiment file: restyling a figure re-runs no simulation, editing the engine does.

The Snakefile imports this module: it needs nothing but the standard library and PyYAML.
"""

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from sims.errors import InputError

PACKAGE = Path(__file__).parent
EXPERIMENTS = Path("experiments")
FIDELITIES = ("smoke", "standard", "paper")
STEPS = ("simulate", "predict", "judge", "plot", "audit", "ledger", "report")

_ROOTS = {
    "simulate": ("sims.simulation", "sims.experiment", "sims.terms", "sims.runtime"),
    "predict": ("sims.theory", "sims.experiment", "sims.terms", "sims.runtime"),
    "judge": ("sims.judgement", "sims.results"),
    "plot": ("sims.figures", "sims.results"),
    "audit": ("sims.audit", "sims.runtime"),
    "ledger": ("sims.judgement",),
    "report": ("sims.report",),
}
_OWN_CODE = {
    "simulate": "simulate.py",
    "predict": "predict.py",
    "judge": "analysis.py",
    "plot": "analysis.py",
}
# One analysis.py both judges and draws: neither half depends on what only the other imports. The
# words of an error message and the version number change no result.
_APART = {"judge": ("sims.figures",), "plot": ("sims.judgement",)}
_NO_RESULT = ("sims", "sims.errors", "sims.validation")


def choose(config: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The fidelity and the experiments that ``snakemake --config`` asks for.

    Raises:
        InputError: an unknown key, fidelity or experiment.
    """
    for key in config:
        if key not in ("fidelity", "experiment"):
            raise InputError("--config", key, "fidelity=…, experiment=…")
    fidelity = config.get("fidelity", "standard")
    if fidelity not in FIDELITIES:
        raise InputError("fidelity", fidelity, ", ".join(FIDELITIES))
    names = experiments()
    wanted = config.get("experiment")
    if wanted is None:
        return fidelity, names
    if wanted not in names:
        raise InputError("experiment", wanted, ", ".join(names) or "none found")
    return fidelity, [wanted]


def experiments() -> list[str]:
    """Names of all experiments in the working directory."""
    return sorted(path.parent.name for path in EXPERIMENTS.glob("*/experiment.yaml"))


def accelerated() -> bool:
    """Whether JAX is installed for a GPU or TPU, on which simulations then take turns."""
    return any(map(find_spec, ("jax_cuda12_plugin", "jax_cuda13_plugin", "libtpu")))


def fingerprint(step: str, experiment: str | Path, fidelity: str) -> str:
    """Hash of all that a step of an experiment depends on, but for its input files.

    Args:
        step: one of :data:`STEPS`.
        experiment: its name, or its folder.
        fidelity: smoke, standard or paper.

    Raises:
        InputError: the experiment file cannot be read.
    """
    folder = folder_of(experiment)
    part = _part(step, folder, fidelity)
    return _digest(code(step, experiment), json.dumps(part, sort_keys=True))


def code(step: str, experiment: str | Path) -> str:
    """Hash of the code alone that a step of an experiment runs."""
    own = folder_of(experiment) / _OWN_CODE.get(step, "none")
    modules = {name for root in _ROOTS[step] for name in (root, *_closure(root))}
    texts = []
    if own.is_file():
        texts.append(own.read_text(encoding="utf-8"))
        for name in _imports(texts[0], ""):
            modules |= {name, *_closure(name)}
    apart = _APART.get(step, ())
    modules = {m for m in modules if m not in _NO_RESULT and not m.startswith(apart or "-")}
    if step == "report":
        shown = (*PACKAGE.glob("report/*.j2"), *Path("papers").glob("*.yaml"))
        texts += [path.read_text(encoding="utf-8") for path in sorted(shown)]
    sources = {m: _source(m) + _foreign(m) for m in sorted(modules)}
    return _digest(*texts, *(f"{m}\n{source}" for m, source in sources.items() if source))


def folder_of(experiment: str | Path) -> Path:
    """The folder of an experiment, given as a name or as a path.

    Raises:
        InputError: there is no such experiment.
    """
    for folder in (EXPERIMENTS / experiment, Path(experiment)):
        if (folder / "experiment.yaml").is_file():
            return folder
    raise InputError(
        "experiment",
        str(experiment),
        ", ".join(experiments()) or "a folder with an experiment.yaml",
    )


def also_reads(step: str, wildcards: Any, fidelity: str) -> list[str]:
    """Files that only some experiments' steps read.

    An experiment that samples until its claims are decided needs the predictions to see it.
    """
    if step != "simulate":
        return []
    whole = _yaml(folder_of(wildcards.name))
    changes = (whole.get("fidelities") or {}).get(fidelity) or {}
    needed = _decides(whole, changes)
    return [f"results/{fidelity}/{wildcards.name}/theory.nc"] if needed else []


def _decides(whole: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    parts = [part.get("simulation") for part in (changes, whole) if isinstance(part, Mapping)]
    asked = [part["decide"] for part in parts if isinstance(part, Mapping) and "decide" in part]
    return bool(asked) and asked[0] != "no"


def _yaml(folder: Path) -> dict[str, Any]:
    try:
        text = (folder / "experiment.yaml").read_text(encoding="utf-8")
        whole = yaml.safe_load(text)
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        whole = None
    if not isinstance(whole, dict):
        path = str(folder / "experiment.yaml")
        raise InputError(path, "unreadable", "a YAML mapping (see `sims schema`)")
    return whole


def _part(step: str, folder: Path, fidelity: str) -> dict[str, Any]:
    """The part of the experiment file (and the caption) that a step reads."""
    whole = _yaml(folder)
    changes = (whole.get("fidelities") or {}).get(fidelity) or {}
    keys: tuple[str, ...] = ()
    if step in ("simulate", "predict"):
        road = "simulation" if step == "simulate" else "theory"
        keys = ("problem", "grid", road)
        if step == "predict":
            changes = {k: v for k, v in changes.items() if k != "simulation"}
        if (folder / _OWN_CODE[step]).is_file():
            keys += ("settings",)
        if step == "simulate" and _decides(whole, changes):
            keys += ("claims", "paper")  # their margins and number say when sampling may stop
    elif step in ("judge", "plot"):
        keys = ("settings", "claims", "paper") if step == "judge" else ("settings", "title")
        changes = {}
    elif step == "ledger":  # adjusts for the number of all claims of a paper, judged or not
        return {name: _claims_by_paper(_yaml(folder_of(name))) for name in experiments()}
    else:
        return whole if step == "report" else {}
    part = {key: whole.get(key) for key in keys}
    if changes:
        part["fidelity"] = changes
    if step == "plot" and (folder / "caption.md").is_file():
        part["caption"] = (folder / "caption.md").read_text(encoding="utf-8")
    return part


def _claims_by_paper(whole: Mapping[str, Any]) -> dict[str, int]:
    """How many claims an experiment file makes of each paper; of its own, "None" if not named."""
    claims = [c for c in whole.get("claims") or () if isinstance(c, Mapping)]
    return Counter(str(claim.get("paper", whole.get("paper"))) for claim in claims)


@lru_cache
def _closure(module: str) -> frozenset[str]:
    """All modules of this package that a module imports, directly or through others."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(_imports(_source(name), name))
    return frozenset(seen)


def _imports(source: str, module: str) -> Iterator[str]:
    """The modules of this package that a source text imports anywhere in it."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return  # the step itself will say where
    names: list[str] = []
    annotations = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in annotations:
            continue  # imported by a type checker alone
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names += [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
    for name in names:
        if name.split(".")[0] == "sims" and _path(name):
            parts = name.split(".")
            # Importing a module runs the packages it is in.
            yield from (".".join(parts[:k]) for k in range(2, len(parts) + 1))


def _path(module: str) -> Path | None:
    base = PACKAGE.joinpath(*module.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file() and module != "sims":
            return path
    return None


@lru_cache
def _source(module: str) -> str:
    path = _path(module)
    return path.read_text(encoding="utf-8") if path else ""


@lru_cache
def _foreign(module: str) -> str:
    """What a package holds in C++."""
    path = _path(module)
    if path is None or path.name != "__init__.py":
        return ""
    return "".join(part.read_text(encoding="utf-8") for part in sorted(path.parent.glob("*.cc")))


def _digest(*parts: str) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part.encode()).digest())
    return whole.hexdigest()[:16]
