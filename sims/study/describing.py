"""Words and units of the variables and coordinates in result files.

Those of both methods are in two files next to this module. An experiment describes further ones in
its ``variables.yaml``.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr
from pydantic import Field, RootModel

from sims.base.documents import read_yaml
from sims.base.terms import LABELS
from sims.base.validation import Strict, parse

SQUARE, KEYS, NUMBER = "squared unit of Y", "keys", "1"


class Words(NamedTuple):
    """Description of a variable in words, and its unit; a pure number has the unit "1"."""

    long_name: str
    units: str = NUMBER


class VariableSpec(Strict):
    """A variable or coordinate that has a unit."""

    long_name: str = Field(min_length=1)
    """Description in words."""
    units: str = Field(default=NUMBER, min_length=1)
    """1 if it has none."""


class VariablesSpec(RootModel[dict[str, str | VariableSpec]]):
    """The file ``variables.yaml``: descriptions of the variables of an experiment's code.

    A text describes a variable or coordinate without a unit. A name that ends in ``_mcse``, the
    Monte Carlo standard error of another, needs no description.
    """


def _read(path: Path) -> dict[str, Words]:
    """Descriptions in a file."""
    variables = {}
    for name, spec in parse(VariablesSpec, read_yaml(path), str(path)).root.items():
        variables[name] = Words(spec) if isinstance(spec, str) else Words(**spec.model_dump())
    return variables


def read_variables(folder: Path | None) -> dict[str, Words]:
    """Descriptions in the ``variables.yaml`` of a folder; empty without folder or file.

    Raises:
        InputError: the file cannot be read, or says something else.
    """
    path = None if folder is None else folder / "variables.yaml"
    return {} if path is None or not path.is_file() else _read(path)


_TERMS = {name: Words(label, SQUARE) for name, label in LABELS.items()}
VARIABLES = _TERMS | _read(Path(__file__).with_name("variables.yaml"))
"""Variables of both methods, by name."""
FIELDS = _read(Path(__file__).with_name("fields.yaml"))
"""Fields of a problem by their dotted path."""
_AFFIXES = {
    "_theory$": ", theory",
    "_mcse$": ", Monte Carlo standard error",
    "_error$": ", bound on its error",
    "^integrated_": ", averaged over queries",
    "^raw_": ", from drawn labels",
    "^each_": ", of every problem",
}


def words(name: str, variables: Mapping[str, Words]) -> Words | None:
    """Description of a variable, or None if nobody gives one.

    Args:
        name: name of the variable, which may contain another's name, as in ``integrated_…_mcse``.
        variables: an experiment's variables.
    """
    if entry := variables.get(name) or VARIABLES.get(name):
        return entry
    for affix, suffix in _AFFIXES.items():
        stem = re.sub(affix, "", name)
        if stem != name and (entry := words(stem, variables)):
            return entry._replace(long_name=entry.long_name + suffix)
    return None


def described(data: xr.Dataset, variables: Mapping[str, Words] | None = None) -> xr.Dataset:
    """The dataset with ``long_name`` and ``units`` at every variable and coordinate.

    What nobody describes is called by its name, and counts as a number.

    Args:
        data: what has another name where it comes from has that as its attribute ``path``: the
            points' coordinates, which are fields of problems, their dotted path.
        variables: an experiment's variables.
    """
    data = data.copy()
    variables = variables or {}
    for name in map(str, data.variables):
        path = data[name].attrs.get("path")
        entry = words(name if path is None else path, variables) or FIELDS.get(path or name)
        text = entry or Words((path or name).replace(".", " ").replace("_", " "))
        data[name].attrs |= {"long_name": text.long_name, "units": text.units}
    return data


def attributes(origin: Mapping[str, Any]) -> dict[str, str]:
    """Main facts of a provenance, as text for a file's attributes.

    Args:
        origin: facts from :mod:`sims.study.provenance`, with the seed; missing ones become "none".

    Returns:
        ``experiment``, ``fidelity``, ``method``, ``title``, ``fingerprint`` (of code and settings),
        ``versions``, ``device``, ``precision``, ``seed``, and ``replicates_asked`` and
        ``replicates_done`` of a point.
    """
    names = (
        "experiment",
        "fidelity",
        "method",
        "fingerprint",
        "device",
        "seed",
        "replicates_asked",
        "replicates_done",
    )
    facts = {name: origin.get(name) for name in names} | {
        "title": origin.get("specification", {}).get("title"),
        "versions": ", ".join(f"{k} {v}" for k, v in origin.get("versions", {}).items()),
        # As runtime.py sets it: theory's, and that of samplers which do not say.
        "precision": origin.get("precision") or "float64 unless the experiment's code sets another",
    }
    return {name: "none" if value in (None, "") else str(value) for name, value in facts.items()}
