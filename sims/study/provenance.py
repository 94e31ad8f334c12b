"""Provenance of a result: enough to run it again, without persons and places.

No host names, no paths, no time stamps: the same run on another machine of the same kind writes
the same provenance.
"""

import json
import os
import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

PACKAGES = (
    "jax",
    "jaxlib",
    "equinox",
    "numpyro",
    "numpy",
    "scipy",
    "xarray",
    "pandas",
    "matplotlib",
    "pydantic",
)


ORIGIN = "origin"
"""Attribute of a unit's result: versions and machine that it was computed with, as JSON."""


def origin(**facts: Any) -> dict[str, Any]:
    """The facts of a result, with the versions and the machine that it was made with."""
    return {**facts, "versions": versions(), **machine()}


def versions() -> dict[str, str]:
    """Versions of Python, of this package and of the packages that determine its numbers."""
    from sims import __version__

    installed = {"python": platform.python_version(), "sims": __version__}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):  # of a light install
            installed[name] = version(name)
    return installed


def machine() -> dict[str, Any]:
    """Kind of machine, device and compiler flags (flags that hold a path are left out)."""
    flags = [f for f in os.environ.get("XLA_FLAGS", "").split() if "/" not in f]
    out: dict[str, Any] = {
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
        "xla_flags": " ".join(flags),
    }
    if "jax" in sys.modules:
        import jax

        devices = jax.devices()
        out["device"] = devices[0].device_kind
        out["backend"] = devices[0].platform
        out["devices"] = len(devices)
        out["matmul_precision"] = str(getattr(jax.config, "jax_default_matmul_precision", ""))
    return out


def origins(units: Iterable["xr.Dataset"]) -> list[dict[str, Any]]:
    """The distinct versions and machines with which units of a result were computed."""
    found = sorted({data.attrs[ORIGIN] for data in units if ORIGIN in data.attrs})
    return [json.loads(text) for text in found]


def replicates(points: Iterable["xr.Dataset"]) -> dict[str, Any]:
    """Requested and finished replicates, from the points' attributes."""
    attrs = [data.attrs for data in points if "replicates" in data.attrs]
    if not attrs:
        return {}
    requested = [a.get("batches_asked", 0) * a.get("replicates_per_batch", 0) for a in attrs]
    finished = [int(a["replicates"]) for a in attrs]
    return {
        "precision": str(attrs[0].get("precision", "")),
        "replicates_asked": _range(requested),
        "replicates_done": _range(finished),
        "replicates_total": sum(finished),
    }


def _range(values: list[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
