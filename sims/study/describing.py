"""Words and units of the variables and coordinates in result files.

This module has those of both methods. An experiment describes further ones in its
``variables.yaml``.
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

Y, SQUARE, X, KEYS, NUMBER = "unit of Y", "squared unit of Y", "unit of X", "keys", "1"


class Words(NamedTuple):
    """Description of a variable in words, and its unit; a pure number has the unit "1"."""

    long_name: str
    units: str = NUMBER


class VariableSpec(Strict):
    """A variable or coordinate that has a unit."""

    long_name: str = Field(min_length=1, description="description in words")
    units: str = Field(default=NUMBER, min_length=1, description="1 if it has none")


class VariablesSpec(RootModel[dict[str, str | VariableSpec]]):
    """The file ``variables.yaml``: descriptions of the variables of an experiment's code.

    A text describes a variable or coordinate without a unit. A name that ends in ``_mcse``, the
    Monte Carlo standard error of another, needs no description.
    """


VARIABLES: dict[str, Words] = {
    **{name: Words(label, SQUARE) for name, label in LABELS.items()},
    "bias": Words("bias of a head", Y),
    "bias_product": Words("product of two heads' biases", SQUARE),
    "signal_covariance": Words("signal covariance of two heads", SQUARE),
    "noise_covariance": Words("noise covariance of two heads", SQUARE),
    "total_covariance": Words("covariance of two heads, signal and noise", SQUARE),
    "n_eff": Words("effective number of keys of a head", KEYS),
    "n_eff_least": Words("smallest effective number of keys over queries", KEYS),
    "n_third": Words("third-moment keys of a head", KEYS),
    "empty_rate": Words("share of cases without a key in reach"),
    "mean_empty_rate": Words("share of cases without a key in reach, averaged over queries"),
    "empty_probability": Words("probability that no key is in reach"),
    "defect": Words("deviation from 1 of a quantity that must be 1"),
    "converged": Words("whether the requested accuracy was reached"),
    "radius": Words("radius of a head's neighbourhood as n grows", X),
    "radius_sd": Words("standard deviation of the radius", X),
    "attended": Words("keys attended to as n grows", KEYS),
    "expected_attended": Words("expected keys attended to", KEYS),
    "rounding": Words("bound on rounding, as a share of a term"),
    "batches": Words("batches that were sampled"),
    "replicates": Words("replicates that were sampled"),
    "faults": Words("reasons why the point's numbers are unusable"),
    "cautions": Words("cautions about the point's numbers"),
    "point": Words("name of the point"),
    "order": Words("order of theory"),
}
"""Variables of both methods, by name."""
FIELDS: dict[str, Words] = {
    "dimension": Words("dimension of the keys"),
    "design": Words("law of the keys"),
    "design.correlation": Words("correlation of the noise of redundant views"),
    "design.noise": Words("noise of redundant views", X),
    "target": Words("target"),
    "target.lengthscale": Words("lengthscale of the target", X),
    "target.beta": Words("smoothness of the target"),
    "target.nu": Words("smoothness of the target"),
    "noise_sd": Words("standard deviation of the label noise", Y),
    "heads.count": Words("number of heads"),
    "heads.width": Words("width of a head"),
    "heads.frames": Words("frames of the heads"),
    "heads.key_frames": Words("frames that project keys"),
    "heads.key_frames.angle": Words("principal angle of two heads' key frames", "degree"),
    "heads.frames.angle": Words("principal angle of two heads", "degree"),
    "heads.frames.cosine": Words("cosine of the principal angle of two heads"),
    "heads.frames.seed": Words("seed of the frames"),
    "heads.kernel": Words("kernel or weight rule of the heads"),
    "heads.bandwidth": Words("bandwidth of the heads", X),
    "n": Words("number of keys", KEYS),
    "queries": Words("law of the queries"),
    "queries.count": Words("number of queries"),
    "queries.scale": Words("scale of the queries", X),
}
"""Fields of a problem by their dotted path."""
_AFFIXES = {
    "_theory$": ", theory",
    "_mcse$": ", Monte Carlo standard error",
    "_error$": ", bound on its error",
    "^integrated_": ", averaged over queries",
    "^raw_": ", from drawn labels",
    "^each_": ", of every problem",
}


def read_variables(folder: Path | None) -> dict[str, Words]:
    """Descriptions in the ``variables.yaml`` of a folder; empty without folder or file.

    Raises:
        InputError: the file cannot be read, or says something else.
    """
    path = None if folder is None else folder / "variables.yaml"
    if path is None or not path.is_file():
        return {}
    variables = {}
    for name, spec in parse(VariablesSpec, read_yaml(path), str(path)).root.items():
        if isinstance(spec, str):
            spec = VariableSpec(long_name=spec)
        variables[name] = Words(spec.long_name, spec.units)
    return variables


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
